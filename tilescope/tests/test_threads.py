"""Races among the threads of one program: what a barrier must order, and what needs none."""

import numpy as np
import pytest
import triton
import triton.language as tl

from .machine_for_tests import line_of, on_machine

B = 64
X = np.random.default_rng(3).standard_normal(B).astype(np.float32)


def races(kernel, how: str = "", s=None, grid=(2,), **constants) -> list[dict]:
    """Run two programs, each with a row of scratch of its own."""
    tensors = {
        "x": X,
        "s": np.zeros((2, B), np.float32) if s is None else s,
        "o": np.zeros((2, B), np.float32),
    }
    report = on_machine(kernel, grid, tensors, {"B": B, **({"HOW": how} if how else {}), **constants}).report
    assert report.error is None and not report.undecided
    return report.races


@triton.jit
def reversed_by(x, s, o, B: tl.constexpr, HOW: tl.constexpr):
    i = tl.arange(0, B)
    row = tl.program_id(0) * B
    v = tl.load(x + i)
    tl.store(s + row + i, v + row)  # kept
    if HOW == "barrier":
        tl.debug_barrier()
    elif HOW == "sum":
        v += tl.sum(v, 0)
    elif HOW == "long sum":
        v += tl.sum(tl.reshape(tl.broadcast_to(v[:, None], (B, 8)), (8 * B,)), 0)
    elif HOW == "ticket":
        v += tl.atomic_add(o + row, 1.0)
    elif HOW == "unused atomic":
        tl.atomic_add(o + row, 1.0)
    elif HOW == "reshaped":
        v += tl.reshape(tl.reshape(v, (B // 8, 8)), (B,))
    elif HOW == "another load":
        v += tl.load(x + B - 1 - i)
    back = tl.load(s + row + B - 1 - i)  # taken
    tl.store(o + row + i, back + v)


@pytest.mark.parametrize("how", ["barrier", "long sum", "ticket"])
def test_what_lets_all_threads_wait_orders_a_store_and_a_load(how):
    assert not races(reversed_by, how)


@pytest.mark.parametrize("how", ["nothing", "sum", "unused atomic", "reshaped", "another load"])
def test_a_load_of_what_another_lane_stored_needs_a_barrier(how):
    found = races(reversed_by, how)
    race = next(race for race in found if race["tensor"] == "s")
    assert race["how"] == "read after write by another lane"
    assert race["line"] == line_of(reversed_by, "# taken")
    assert race["earlier"] == line_of(reversed_by, "# kept")
    assert race["program"] == race["other"]


def test_each_pair_of_lines_is_told_once_for_all_programs():
    assert len(races(reversed_by, "nothing", grid=(2,))) == 1


@triton.jit
def again(x, s, o, B: tl.constexpr):
    i = tl.arange(0, B)
    at = s + tl.program_id(0) * B + i
    for _ in range(3):
        tl.store(at, tl.load(at) + tl.load(x + i))
    tl.store(o + tl.program_id(0) * B + i, tl.load(at))
    tl.store(at, tl.load(at, mask=i > 5, other=0.0) * 2, mask=i > 3)


def test_a_lane_may_use_again_what_it_stored_itself():
    assert not races(again)


@triton.jit
def again_for_a_sum(x, s, o, B: tl.constexpr, BARRIER: tl.constexpr):
    i = tl.arange(0, B)
    at = s + tl.program_id(0) * B + i
    tl.store(at, tl.load(x + i))
    if BARRIER:
        tl.debug_barrier()
    tl.store(o + tl.program_id(0) * B + i, tl.load(at) - tl.sum(tl.load(x + i)))


@pytest.mark.parametrize("barrier", [False, True])
def test_another_lane_may_load_it_where_a_sum_has_its_own_layout(barrier):
    found = races(again_for_a_sum, BARRIER=barrier)
    assert {race["how"] for race in found} == (set() if barrier else {"read after write by another lane"})


@triton.jit
def wider_than_stored(x, s, o, n, B: tl.constexpr):
    i, row = tl.arange(0, B), tl.program_id(0) * B
    tl.store(s + row + i, tl.load(x + i), mask=i < n)
    tl.store(o + row + i, tl.load(s + row + i))


def test_another_lane_may_load_it_where_the_compiler_sees_more_neighbours():
    """The mask is of a size that nothing divides, so the store has one number for each thread, and the load four."""
    tensors = {name: np.ones(2048, np.float32) * (name == "x") for name in "xso"}
    aligned = {"attributes": {(place,): [["tt.divisibility", 16]] for place in range(3)}}
    report = on_machine(
        wider_than_stored, (2,), tensors, {"B": 1024}, scalars={"n": 1021}, options=aligned
    ).report
    assert {race["how"] for race in report.races} == {"read after write by another lane"}


@triton.jit
def in_place(x, s, o, B: tl.constexpr, HOW: tl.constexpr):
    i = tl.arange(0, B)
    row = s + tl.program_id(0) * B
    if HOW == "turned round":
        v = tl.load(row + i)
        tl.store(row + B - 1 - i, v)
    elif HOW == "own lane":
        v = tl.load(row + i)
        tl.store(row + i, v + 1)
    elif HOW == "several readers":
        v = tl.load(row + i // 2)
        tl.store(row + i, v + 1)
    elif HOW == "a neighbour and the lane itself":
        v = tl.load(row + (i | 1))
        tl.store(row + i, v + 1, mask=i % 2 == 1)
    elif HOW == "all lanes":
        v = tl.load(row + tl.zeros((B,), tl.int32))
        tl.store(row + i, v + 1, mask=i == 0)
    elif HOW == "another lane, then the lane itself":
        v = tl.load(row + B - 1 - i)
        w = tl.load(row + i)
        tl.store(row + i, v + w)
    elif HOW == "two readers":
        v = tl.load(row + i)
        w = tl.load(row + B - 1 - i)
        tl.store(row + i, v + w)
    elif HOW == "two readers, then a barrier":
        v = tl.load(row + i)
        w = tl.load(row + B - 1 - i)
        tl.debug_barrier()
        tl.store(row + i, v + w)
    elif HOW == "the same value":
        v = tl.load(row + B - 1 - i)
        tl.store(row + i, v - v)


@pytest.mark.parametrize(
    "how",
    [
        "turned round",
        "several readers",
        "two readers",
        "a neighbour and the lane itself",
        "all lanes",
        "another lane, then the lane itself",
    ],
)
def test_a_store_where_another_lane_has_loaded_needs_a_barrier(how):
    found = races(in_place, how, np.arange(2 * B, dtype=np.float32).reshape(2, B))
    assert [race["how"] for race in found] == ["write after read by another lane"]


@pytest.mark.parametrize("how", ["own lane", "two readers, then a barrier", "the same value"])
def test_a_store_that_meets_no_other_lane_needs_none(how):
    s = np.zeros((2, B), np.float32) if how == "the same value" else np.ones((2, B), np.float32)
    assert not races(in_place, how, s)


@triton.jit
def cleared(x, s, o, B: tl.constexpr, HOW: tl.constexpr):
    i = tl.arange(0, B)
    row = s + tl.program_id(0) * B
    tl.store(row + i, i + 1.0)
    if HOW == "barrier":
        tl.debug_barrier()
    if HOW == "store":
        tl.store(row + B - 1 - i, -1.0)
    else:
        tl.atomic_add(row + i // 2, 1.0)
        if HOW == "barrier":
            tl.debug_barrier()
        tl.store(o + tl.program_id(0) * B + i, tl.load(row + i))


@pytest.mark.parametrize(
    "how, hows",
    [
        ("store", {"write after write"}),
        ("atomic", {"atomic after write", "read after write"}),
        ("barrier", set()),
    ],
)
def test_a_row_that_is_cleared_first_needs_a_barrier(how, hows):
    assert {race["how"].removesuffix(" by another lane") for race in races(cleared, how)} == hows


@triton.jit
def counted(x, s, o, B: tl.constexpr):
    i = tl.arange(0, B)
    row = s + tl.program_id(0) * B
    tl.store(row + i, 1.0)
    tl.debug_barrier()
    for at in range(0, B, 16):
        tl.atomic_add(row + (at // 16 + tl.arange(0, 16)) % 4, 1.0)
    tl.debug_barrier()
    tl.store(o + tl.program_id(0) * B + i, tl.load(row + i))


def test_atomics_of_many_lanes_never_race_with_one_another():
    assert not races(counted)


@triton.jit
def single(x, s, o, B: tl.constexpr, HOW: tl.constexpr):
    i = tl.arange(0, B)
    row = s + tl.program_id(0) * B
    if HOW == "into a block":
        tl.store(row, tl.sum(tl.load(x + i), 0))
        v = tl.load(row)
        tl.store(o + tl.program_id(0) * B + i, v + tl.load(x + i))
    elif HOW == "into a branch":
        tl.store(row, tl.sum(tl.load(x + i), 0))
        if tl.load(row) > -1e9:
            tl.store(o + tl.program_id(0) * B + i, tl.load(x + i))
    elif HOW == "into one thread's branch":
        tl.atomic_add(row, 1.0)
        if tl.load(row) > 0.0:
            tl.store(o + tl.program_id(0) * B, 1.0)
    elif HOW == "counted up":
        v = tl.load(row)
        tl.store(row, v + 1.0)
        tl.store(o + tl.program_id(0) * B + i, v + tl.load(x + i))
    elif HOW == "one thread's own":
        total = 0.0
        for at in range(4):
            total = tl.load(row) + at + 1.0
            tl.store(row, total)
        tl.store(o + tl.program_id(0) * B, tl.load(row) + total)
    elif HOW == "volatile":
        tl.store(row, tl.sum(tl.load(x + i), 0))
        v = tl.load(row, volatile=True)
        tl.store(o + tl.program_id(0) * B + i, v + tl.load(x + i))
    elif HOW == "into all lanes of a block":
        tl.store(row + i, tl.load(x + i))
        v = tl.load(row + tl.zeros((B,), tl.int32))
        tl.store(o + tl.program_id(0) * B + i, v)
    elif HOW == "of a block's first lane":
        tl.store(row + i, tl.load(x + i))
        tl.store(o + tl.program_id(0) * B, tl.load(row))
    elif HOW == "of a block's last lane":
        tl.store(row + i, tl.load(x + i))
        tl.store(o + tl.program_id(0) * B, tl.load(row + B - 1))


@pytest.mark.parametrize(
    "how, late",
    [
        ("into a block", "read"),
        ("into a branch", "read"),
        ("volatile", "read"),
        ("into all lanes of a block", "read"),
        ("counted up", "write"),
        ("of a block's last lane", "read"),
        ("one thread's own", ""),
        ("into one thread's branch", ""),
        ("of a block's first lane", ""),
    ],
)
def test_one_thread_stores_a_number_that_all_threads_load(how, late):
    assert [race["how"].split()[0] for race in races(single, how)] == ([late] if late else [])


@triton.jit
def waiting(x, s, o, B: tl.constexpr):
    i = tl.arange(0, 16)
    me = tl.program_id(0)
    tl.store(s + me, 1.0)
    while tl.sum(tl.load(s + i, mask=i < 2, other=0.0, volatile=True), 0) < 2.0:
        pass
    tl.store(o + me * B + i, tl.load(x + i))


def test_a_program_may_wait_for_its_own_flag_too():
    tensors = {"x": X, "s": np.zeros(2, np.float32), "o": np.zeros((2, B), np.float32)}
    report = on_machine(waiting, (2,), tensors, {"B": B}).report
    assert not [race for race in report.races if race["earlier"] is not None], report.races


@triton.jit
def dot_between(x, s, o, B: tl.constexpr, LOADED: tl.constexpr):
    i, row = tl.arange(0, 16), tl.program_id(0) * B
    tile = tl.load(x + i[:, None] * 0 + i[None, :]) if LOADED else tl.zeros((16, 16), tl.float32) + tl.load(x)
    tl.store(s + row + tl.arange(0, B), tl.load(x + tl.arange(0, B)))
    sums = tl.dot(tile, tile)
    tl.store(
        o + row + tl.arange(0, B), tl.load(s + row + B - 1 - tl.arange(0, B)) + tl.max(tl.max(sums, 0), 0)
    )


@pytest.mark.parametrize("loaded", [True, False])
def test_a_product_of_what_each_thread_makes_for_itself_is_no_barrier(loaded):
    found = {race["how"] for race in races(dot_between, LOADED=loaded)}
    assert found == (set() if loaded else {"read after write by another lane"})
