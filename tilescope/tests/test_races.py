"""One kernel for each family: what races, what is ordered, what nobody can say."""

import re

import numpy as np
import pytest
import triton
import triton.language as tl

from tilescope.machine import clocks, turns

from .machine_for_tests import line_of, on_machine

B = 16
X = np.random.default_rng(9).standard_normal((6, B)).astype(np.float32)


def run(kernel, grid, tensors, constants=None, **more):
    return on_machine(kernel, grid, tensors, {"B": B, **(constants or {})}, **more).report


def hows(report) -> set[str]:
    return {race["how"] for race in report.races}


@triton.jit
def overlapping(x, o, step, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(o + tl.program_id(0) * step + i, tl.load(x + i) + tl.program_id(0))


@pytest.mark.parametrize("step, raced", [(8, True), (B, False)])
def test_two_programs_write_one_element(step, raced):
    report = run(
        overlapping, (4,), {"x": X[0], "o": np.zeros(3 * step + B, np.float32)}, scalars={"step": step}
    )
    assert hows(report) == ({"write after write"} if raced else set())
    if raced:
        race = report.races[0]
        assert (
            race["tensor"] == "o"
            and race["line"] == line_of(overlapping, "tl.store")
            and race["program"] != race["other"]
        )


@triton.jit
def same_value(x, o, B: tl.constexpr):
    tl.store(o + tl.arange(0, B), tl.load(x + tl.arange(0, B)))


def test_the_same_value_written_twice_races_with_nobody():
    assert not run(same_value, (4,), {"x": X[0], "o": np.zeros(B, np.float32)}).races


@triton.jit
def neighbour(o, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    v = tl.load(o + (i + B) % n)
    tl.store(o + i, v + 1)


@pytest.mark.parametrize("chunk", [1, 1 << 19])
def test_a_neighbour_read_in_place_races_whatever_the_order(chunk, monkeypatch):
    from tilescope.machine import interpreter

    monkeypatch.setattr(interpreter, "CHUNK_ELEMENTS", chunk)
    report = run(
        neighbour, (4,), {"o": np.zeros(4 * B, np.float32)}, scalars={"n": 4 * B}, roles={"o": "inout"}
    )
    assert hows(report) & {"write after read", "read after write"}


@triton.jit
def two_widths(x, o, B: tl.constexpr):
    """Writes as 32 bits what the neighbour writes as 16."""
    p = tl.program_id(0)
    if p == 0:
        tl.store(
            o.to(tl.pointer_type(tl.int32), bitcast=True) + tl.arange(0, B),
            tl.load(x + tl.arange(0, B)).to(tl.int32) + 7,
        )
    else:
        tl.store(o + B + tl.arange(0, B), tl.load(x + tl.arange(0, B)).to(tl.int16) + 3)


def test_pointers_of_two_widths_hide_nothing():
    assert hows(run(two_widths, (2,), {"x": X[0], "o": np.zeros(2 * B, np.int16)})) == {"write after write"}


@triton.jit
def hidden(x, o, s, n, B: tl.constexpr):
    """One atomic that nobody reads beside a read of what a neighbour writes."""
    tl.atomic_add(s, 1)
    i = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(o + i, tl.load(x + i))
    tl.store(o + i, tl.load(o + (i + B) % n) + 1)


def test_an_atomic_elsewhere_hides_no_race():
    tensors = {"x": X, "o": np.zeros(6 * B, np.float32), "s": np.zeros(1, np.int32)}
    assert "read after write" in hows(run(hidden, (6,), tensors, scalars={"n": 6 * B}))


@triton.jit
def split(
    x,
    s_part,
    s_count,
    o,
    SPLITS: tl.constexpr,
    B: tl.constexpr,
    EARLY: tl.constexpr,
    SEM: tl.constexpr,
    SCOPE: tl.constexpr,
    BARRIER: tl.constexpr,
):
    t, k, i = tl.program_id(0), tl.program_id(1), tl.arange(0, B)
    v = tl.load(x + (t * SPLITS + k) * B + i)
    if EARLY:
        done = tl.atomic_add(s_count + t, 1, sem=SEM, scope=SCOPE)
        tl.store(s_part + (t * SPLITS + k) * B + i, v)
    else:
        tl.store(s_part + (t * SPLITS + k) * B + i, v)
        if BARRIER:
            tl.debug_barrier()
        done = tl.atomic_add(s_count + t, 1, sem=SEM, scope=SCOPE)
    if done == SPLITS - 1:
        total = tl.zeros((B,), tl.float32)
        for n in range(SPLITS):
            total += tl.load(s_part + (t * SPLITS + n) * B + i)
        tl.store(o + t * B + i, total)


@pytest.mark.parametrize(
    "early, sem, ordered",
    [
        (False, "acq_rel", True),
        (True, "acq_rel", False),
        (False, "relaxed", False),
        (False, "release", False),
    ],
)
def test_split_k_with_a_counter(early, sem, ordered, scope="gpu"):
    tensors = {
        "x": X,
        "s_part": np.zeros(6 * B, np.float32),
        "s_count": np.zeros(2, np.int32),
        "o": np.zeros(2 * B, np.float32),
    }
    report = run(
        split, (2, 3), tensors, {"SPLITS": 3, "EARLY": early, "SEM": sem, "SCOPE": scope, "BARRIER": True}
    )
    assert hows(report) - {"atomic after atomic"} == (set() if ordered else {"read after write"})
    assert ("atomic after atomic" in hows(report)) == (scope == "cta")
    if ordered:
        np.testing.assert_allclose(tensors["o"].reshape(2, B), X.reshape(2, 3, B).sum(1), rtol=1e-5)


def test_one_thread_releases_what_the_others_stored_before_a_barrier():
    counted = {"s_part": np.zeros(6 * B, np.float32), "s_count": np.zeros(2, np.int32)}
    how = {"SPLITS": 3, "EARLY": False, "SEM": "acq_rel", "SCOPE": "gpu", "BARRIER": False}
    report = run(split, (2, 3), {"x": X, **counted, "o": np.zeros(2 * B, np.float32)}, how)
    assert hows(report) == {"read after write without a barrier"}


@triton.jit
def published(x, s_best, s_count, o, SEM: tl.constexpr, TICKET: tl.constexpr):
    tl.atomic_max(s_best, tl.load(x + tl.program_id(0)), sem=SEM)
    if tl.atomic_add(s_count, 1, sem=TICKET) == tl.num_programs(0) - 1:
        tl.store(o, tl.atomic_max(s_best, 0, sem=SEM))


@pytest.mark.parametrize(
    "sem, ticket, ordered",
    [
        ("acq_rel", "relaxed", True),
        ("relaxed", "acq_rel", True),
        ("relaxed", "relaxed", False),
        ("relaxed", "release", False),
    ],
)
def test_what_relaxed_atomics_publish_is_not_there_yet(sem, ticket, ordered):
    """The count says that all have come, but relaxed atomics of other places may still be on their way."""
    tensors = {"x": np.arange(6, dtype=np.int32)}
    tensors |= {name: np.zeros(1, np.int32) for name in ("s_best", "s_count", "o")}
    report = on_machine(published, (6,), tensors, {"SEM": sem, "TICKET": ticket}).report
    assert hows(report) == (set() if ordered else {"atomic after atomic"})


def test_an_atomic_of_one_block_orders_no_programs():
    test_split_k_with_a_counter(False, "acq_rel", False, "cta")


@triton.jit
def locked(x, s_lock, o, B: tl.constexpr, FREE: tl.constexpr):
    i = tl.arange(0, B)
    v = tl.load(x + tl.program_id(0) * B + i)
    while tl.atomic_cas(s_lock, 0, 1) == 1:
        pass
    tl.store(o + i, tl.load(o + i) + v)
    tl.debug_barrier()
    if FREE:
        tl.atomic_xchg(s_lock, 0)


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_a_spin_lock_orders_what_it_guards(seed):
    tensors = {"x": X, "s_lock": np.zeros(1, np.int32), "o": np.zeros(B, np.float32)}
    report = run(locked, (6,), tensors, {"FREE": True}, roles={"o": "inout"}, seed=seed)
    assert report.error is None and not report.races and not report.undecided
    np.testing.assert_allclose(tensors["o"], X.sum(0), rtol=1e-5, atol=1e-6)


def test_a_lock_that_nobody_frees_is_a_deadlock():
    tensors = {"x": X, "s_lock": np.zeros(1, np.int32), "o": np.zeros(B, np.float32)}
    error = run(locked, (6,), tensors, {"FREE": False}, roles={"o": "inout"}).error
    assert error["kind"] == "Deadlock" and error["line"] == line_of(locked, "while")
    who, first, more, where = re.fullmatch(
        r"all (\d) programs that are left wait, and no other can end that: programs ([\d, ]+) and (\d) more "
        r"in tl.atomic_cas of (.*)",
        error["message"],
    ).groups()
    assert (who, more, where) == ("5", "1", "s_lock[0], which holds 1 since program 5 changed it") and len(
        first.split(", ")
    ) == 4


@triton.jit
def in_a_ring(s_flag, o, B: tl.constexpr, VOLATILE: tl.constexpr):
    """Each of three programs waits for the next one's flag before it raises its own."""
    p = tl.program_id(1)
    following = s_flag + (p + 1) % 3
    if VOLATILE:
        while tl.load(following, volatile=True) == 0:
            pass
    else:
        while tl.atomic_or(following, 0) == 0:
            pass
    tl.atomic_xchg(s_flag + p, 1)
    tl.store(o + p * B + tl.arange(0, B), 0.0)


@pytest.mark.parametrize(("volatile", "call"), [(True, "tl.load"), (False, "tl.atomic_or")])
def test_each_program_of_a_ring_is_named_with_what_it_waits_for(volatile, call):
    tensors = {"s_flag": np.zeros(3, np.int32), "o": np.zeros(3 * B, np.float32)}
    error = run(in_a_ring, (1, 3), tensors, {"VOLATILE": volatile}).error
    assert error["kind"] == "Deadlock"
    for program, flag in (("(0, 0)", 1), ("(0, 1)", 2), ("(0, 2)", 0)):
        assert f"program {program} in {call} of s_flag[{flag}], which holds 0" in error["message"]


@triton.jit
def stream(x, s_flag, s_part, o, B: tl.constexpr, ORDER: tl.constexpr):
    """Program 0 waits for all others."""
    p, i = tl.program_id(0), tl.arange(0, B)
    v = tl.load(x + p * B + i)
    if p == 0:
        for n in range(1, tl.num_programs(0)):
            while tl.atomic_cas(s_flag + n, 1, 1) != 1:
                pass
            v += tl.load(s_part + n * B + i)
        tl.store(o + i, v)
    elif ORDER == "store first":
        tl.store(s_part + p * B + i, v)
        tl.debug_barrier()
        tl.atomic_xchg(s_flag + p, 1)
    else:
        tl.atomic_xchg(s_flag + p, 1)
        tl.store(s_part + p * B + i, v)


@pytest.mark.parametrize("seed", [0, 5])
@pytest.mark.parametrize("order", ["store first", "flag first"])
def test_stream_k(order, seed):
    tensors = {
        "x": X,
        "s_flag": np.zeros(6, np.int32),
        "s_part": np.zeros(6 * B, np.float32),
        "o": np.zeros(B, np.float32),
    }
    report = run(stream, (6,), tensors, {"ORDER": order}, seed=seed)
    if order == "store first":
        assert not report.races and report.error is None
        np.testing.assert_allclose(tensors["o"], X.sum(0), rtol=1e-5, atol=1e-6)
    else:
        assert hows(report) & {"read after write", "write after read"}


@triton.jit
def polled(x, s_flag, o, B: tl.constexpr):
    """Waits by a volatile load, then reads what the other program wrote before it raised the flag."""
    i = tl.arange(0, B)
    if tl.program_id(0) == 0:
        tl.store(o + i, tl.load(x + i))
        tl.atomic_xchg(s_flag, 1)
    else:
        while tl.load(s_flag, volatile=True) == 0:
            pass
        tl.store(o + B + i, tl.load(o + i))


def test_a_volatile_load_waits_and_orders_nothing():
    tensors = {"x": X[0], "s_flag": np.zeros(1, np.int32), "o": np.zeros(2 * B, np.float32)}
    report = run(polled, (2,), tensors)
    assert report.error is None and hows(report) == {"read after write"}


@triton.jit
def tiles_added(x, s_sum, s_count, o, B: tl.constexpr):
    """The tile itself is added atomically; the last to come reads the sum."""
    i = tl.arange(0, B)
    tl.atomic_add(s_sum + i, tl.load(x + tl.program_id(0) * B + i))
    tl.debug_barrier()
    if tl.atomic_add(s_count, 1) == tl.num_programs(0) - 1:
        tl.store(o + i, tl.load(s_sum + i))


@triton.jit
def tiles_added_and_read(x, s_sum, o, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.atomic_add(s_sum + i, tl.load(x + tl.program_id(0) * B + i))
    tl.store(o + tl.program_id(0) * B + i, tl.load(s_sum + i))


def test_atomics_of_tiles_order_what_follows_them():
    tensors = {
        "x": X,
        "s_sum": np.zeros(B, np.float32),
        "s_count": np.zeros(1, np.int32),
        "o": np.zeros(B, np.float32),
    }
    report = run(tiles_added, (6,), tensors, repeatable=False)
    assert not report.races and report.error is None
    np.testing.assert_allclose(tensors["o"], X.sum(0), rtol=1e-5, atol=1e-6)


def test_a_plain_read_beside_atomics_races():
    tensors = {"x": X, "s_sum": np.zeros(B, np.float32), "o": np.zeros(6 * B, np.float32)}
    assert "read after atomic" in hows(run(tiles_added_and_read, (6,), tensors, repeatable=False))


@triton.jit
def zeroed(x, s_sum, o, B: tl.constexpr):
    """Program 0 clears the counter that all add to."""
    if tl.program_id(0) == 0:
        tl.store(s_sum, 5)
    tl.atomic_add(s_sum, 1)
    tl.store(o + tl.program_id(0), 1.0)


def test_a_plain_write_beside_atomics_races():
    report = run(zeroed, (6,), {"x": X, "s_sum": np.zeros(1, np.int32), "o": np.zeros(6, np.float32)})
    assert hows(report) & {"atomic after write", "write after atomic"}


@triton.jit
def float_adds(x, o, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.atomic_add(o + i, tl.load(x + tl.program_id(0) * B + i))


@pytest.mark.parametrize("repeatable", [True, False])
def test_float_additions_race_only_where_bits_are_promised(repeatable):
    o = np.zeros(B, np.float32)
    report = run(float_adds, (6,), {"x": X, "o": o}, roles={"o": "inout"}, repeatable=repeatable)
    assert bool(report.races) == repeatable
    assert all("last bits" in race["how"] for race in report.races)
    np.testing.assert_allclose(o, X.sum(0), rtol=1e-5, atol=1e-6)


def test_beyond_what_can_be_followed_nothing_passes_in_silence(monkeypatch):
    from tilescope.machine import order

    monkeypatch.setattr(order, "MOST_PROGRAMS", 4)
    tensors = {
        "x": X,
        "s_part": np.zeros(6 * B, np.float32),
        "s_count": np.zeros(2, np.int32),
        "o": np.zeros(2 * B, np.float32),
    }
    report = run(
        split,
        (2, 3),
        tensors,
        {"SPLITS": 3, "EARLY": False, "SEM": "acq_rel", "SCOPE": "gpu", "BARRIER": True},
    )
    assert not report.races and "the grid has 6" in report.undecided
    alone = run(overlapping, (4,), {"x": X[0], "o": np.zeros(40, np.float32)}, scalars={"step": 8})
    assert alone.races and not alone.undecided  # without atomics any number is followed


def test_more_waiting_programs_than_threads(monkeypatch):
    monkeypatch.setattr(turns, "MOST_PROGRAMS", 4)
    tensors = {"x": X, "s_lock": np.zeros(1, np.int32), "o": np.zeros(B, np.float32)}
    report = run(locked, (6,), tensors, {"FREE": True}, roles={"o": "inout"})
    assert report.error["kind"] == "OverLimit" and "6 of them" in report.error["message"]


def test_what_releases_left_is_forgotten_when_nothing_carries_it(monkeypatch):
    monkeypatch.setattr(clocks, "MOST_BYTES", 7 * 4 * 3)
    tensors = {
        "x": X,
        "s_part": np.zeros(6 * B, np.float32),
        "s_count": np.zeros(2, np.int32),
        "o": np.zeros(2 * B, np.float32),
    }
    report = run(
        split,
        (2, 3),
        tensors,
        {"SPLITS": 3, "EARLY": False, "SEM": "acq_rel", "SCOPE": "gpu", "BARRIER": True},
    )
    assert not report.races and not report.undecided


def test_more_releases_than_can_be_kept_are_said(monkeypatch):
    monkeypatch.setattr(clocks, "MOST_BYTES", 0)
    tensors = {
        "x": X,
        "s_part": np.zeros(6 * B, np.float32),
        "s_count": np.zeros(2, np.int32),
        "o": np.zeros(2 * B, np.float32),
    }
    report = run(
        split,
        (2, 3),
        tensors,
        {"SPLITS": 3, "EARLY": False, "SEM": "acq_rel", "SCOPE": "gpu", "BARRIER": True},
    )
    assert report.error is None and not report.races and "too many" in report.undecided


@triton.jit
def counted_numbers(s, o, B: tl.constexpr):
    """Each program takes numbers from a counter: whoever comes next."""
    mine = tl.atomic_add(s, 1)
    tl.store(o + mine, tl.program_id(0))


def test_a_queue_gives_every_number_once():
    o = np.full(6, -1, np.int32)
    report = run(counted_numbers, (6,), {"s": np.zeros(1, np.int32), "o": o})
    assert not report.races and sorted(o.tolist()) == list(range(6))


@triton.jit
def best_in_two_steps(x, s, o, B: tl.constexpr):
    """Keep the largest number and who has it by two atomics, between which another program may come."""
    mine = tl.load(x + tl.program_id(0))
    if tl.atomic_max(s, mine) < mine:
        tl.atomic_xchg(o, tl.program_id(0))


def test_programs_that_take_turns_come_between_two_atomics_of_another():
    numbers = np.random.default_rng(4).permutation(16).astype(np.int32)
    best = set()
    for order in range(6):
        o, s = np.full(1, -1, np.int32), np.full(1, -1, np.int32)
        report = run(best_in_two_steps, (16,), {"x": numbers, "s": s, "o": o}, shuffled=order)
        assert report.error is None and s[0] == 15
        best.add(int(o[0]))
        if order == 0:
            assert best == {int(numbers.argmax())}  # one after another, it's right
    assert len(best) > 1
