"""Counts against sums worked out by hand."""

from pathlib import Path

import numpy as np
import pytest
import triton
import triton.language as tl

from kernels import texts

from .machine_for_tests import on_machine

ROOT = Path(__file__).parents[2]


@triton.jit
def tiles(x, o, B: tl.constexpr):
    """Two neighbours read the same block of x; every lane of a row asks for one scale."""
    p, i = tl.program_id(0), tl.arange(0, B)
    v = tl.load(x + p // 2 * B + i)
    s = tl.load(x + i * 0)
    tl.store(o + p * B + i, v * s)


def test_what_is_asked_for_and_what_remains_of_it():
    x, o = np.ones(2 * 64, np.float32), np.zeros(4 * 64, np.float32)
    ran = on_machine(tiles, (4,), {"x": x, "o": o}, {"B": 64}, wave=2)
    assert ran.counts("x", "load") == {
        "requested": 4 * (64 + 64) * 4,
        "dedup": 4 * (64 + 1) * 4,
        "sectors": 4 * (8 + 1) * 32,
        "wave": 64 * 4 + (64 + 1) * 4,
        "pairs": 4 * 64 + (4 + 1) * 64,
        "unique": 128 * 4,
        "accesses": 8,
        "programs": 4,
        "busiest": (64 + 1) * 4,
    }
    assert ran.counts("o", "store") == {
        "requested": 1024,
        "dedup": 1024,
        "sectors": 1024,
        "wave": 1024,
        "pairs": 1024,
        "unique": 1024,
        "accesses": 4,
        "programs": 4,
        "busiest": 256,
    }
    assert ran.tensors["x"].loads.tolist() == [6] + [2] * 127
    assert ran.tensors["o"].stores.tolist() == [1] * 256


@triton.jit
def strided(x, o, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(o + i, tl.load(x + i * 8, mask=i < B // 2, other=0.0))


def test_a_stride_of_eight_takes_a_sector_an_element():
    ran = on_machine(strided, (1,), {"x": np.ones(512, np.float32), "o": np.zeros(64, np.float32)}, {"B": 64})
    counts = ran.counts("x", "load")
    assert counts["requested"] == counts["dedup"] == 32 * 4 and counts["sectors"] == 32 * 32


@triton.jit
def apart(x, o, STEP: tl.constexpr):
    i = tl.arange(0, 32)
    tl.store(o + i, tl.load(x + STEP * i))


def test_a_row_and_a_column_move_what_lesson_00_says():
    lesson = " ".join(texts.words(ROOT / "course", "00_roofline").split())
    for step, said in (
        (1, "of `tl.load(x_ptr + i)` it counts {} bytes wanted and {} moved"),
        (4096, "of `tl.load(x_ptr + 4096 * i)` it counts {} wanted and {} moved"),
    ):
        tensors = {"x": np.ones(32 * 4096, np.float32), "o": np.zeros(32, np.float32)}
        counts = on_machine(apart, (1,), tensors, {"STEP": step}).counts("x", "load")
        assert said.format(counts["dedup"], counts["sectors"]) in lesson


@triton.jit
def some_work(x, o, work, B: tl.constexpr):
    """Of every four programs three have nothing to do."""
    p, i = tl.program_id(0), tl.arange(0, B)
    if p % 4 == 0 and p // 4 < work:
        tl.store(o + p // 4 * B + i, tl.load(x + p // 4 // 8 * B + i))


def test_idle_programs_make_no_wave_longer():
    """Sixteen at work share a block by eights: two waves of eight, however many idle programs lie between them."""
    x, o = np.arange(2 * 32, dtype=np.float32), np.zeros(16 * 32, np.float32)
    ran = on_machine(some_work, (64,), {"x": x, "o": o}, {"B": 32}, wave=8, scalars={"work": 16})
    assert ran.counts("x", "load")["wave"] == 2 * 32 * 4
    assert ran.launch.active == 16 and ran.launch.programs == 64
    assert ran.tensors["x"].loads.tolist() == [8] * 64 and (o.reshape(2, 8, 32) == x.reshape(2, 1, 32)).all()
    assert ran.counts("o", "store")["unique"] == 16 * 32 * 4 and ran.launch.operations["address"] > 0


@triton.jit
def uneven(x, o, B: tl.constexpr):
    """The last program has as many blocks as all others together, and asks for one number time and again."""
    p, i = tl.program_id(0), tl.arange(0, B)
    blocks = tl.where(p == 3, 3, 1)
    for n in range(blocks):
        at = (p + n) * B + i
        tl.store(o + at, tl.load(x + at) + tl.load(x + i * 0))


def test_the_busiest_program_counts_what_it_moves_and_not_how_often_it_asks():
    tensors = {"x": np.ones(6 * 32, np.float32), "o": np.zeros(6 * 32, np.float32)}
    counts = on_machine(uneven, (4,), tensors, {"B": 32}).counts("x", "load")
    assert counts["programs"] == 4 and counts["dedup"] == 6 * 33 * 4 and counts["busiest"] == 3 * 33 * 4


@triton.jit
def alike(o, x, B: tl.constexpr):
    tl.store(o + tl.program_id(0) * B + tl.arange(0, B), tl.load(x + tl.arange(0, B)))


def test_what_all_programs_ask_alike_is_moved_by_each():
    counts = on_machine(
        alike, (5,), {"o": np.zeros(5 * 16, np.float32), "x": np.ones(16, np.float32)}, {"B": 16}
    ).counts("x", "load")
    assert counts["programs"] == 5 and counts["dedup"] == 5 * counts["busiest"] == 5 * 64


@triton.jit
def sums(x, o, B: tl.constexpr):
    i = tl.arange(0, B)
    v = tl.load(x + tl.program_id(0) * B + i)
    w = tl.exp(v) * v + 1.0
    tl.store(o + tl.program_id(0), tl.sum(w, 0) / B)
    tl.atomic_add(o + 4 + i, w)


def test_operations_outside_dots():
    ran = on_machine(
        sums,
        (3,),
        {"x": np.ones((3, 64), np.float32), "s": np.zeros(68, np.float32)} | {"o": np.zeros(68, np.float32)},
        {"B": 64},
        repeatable=False,
    )
    operations = ran.launch.operations
    assert operations["float"] == 3 * (64 + 64 + 63)  # times, plus, and the sum's region
    assert operations["special"] == 3 * (64 + 1)  # exp, and one division
    assert ran.launch.atomics == 3 * 64 and ran.launch.flops == 0
    assert ran.counts("o", "atomic")["requested"] == 3 * 64 * 4


def test_values_alone_leave_the_counts_out():
    x, o = np.ones(2 * 64, np.float32), np.zeros(4 * 64, np.float32)
    ran = on_machine(tiles, (4,), {"x": x, "o": o}, {"B": 64}, counting="values")
    assert ran.counts("x", "load")["dedup"] == 0 and ran.counts("x", "load")["requested"] == 2048
    assert (o == 1).all() and not ran.report.unwritten


@triton.jit
def across(x, o, B: tl.constexpr, APART: tl.constexpr):
    """Neighbouring lanes take numbers APART apart, and all lanes together the same numbers as ever."""
    i = tl.arange(0, B)
    offs = i % (B // APART) * APART + i // (B // APART)
    tl.store(o + i, tl.load(x + offs))


@triton.jit
def turned(x, o, M: tl.constexpr, N: tl.constexpr, BACK: tl.constexpr):
    i, j = tl.arange(0, M)[:, None], tl.arange(0, N)[None, :]
    i = M - 1 - i if BACK else i
    tile = tl.load(x + j * M + i, mask=i < M - 3, other=0.0)
    tl.store(o + i * N + j, tile)


@pytest.mark.parametrize("apart, sectors", [(1, 32), (2, 64), (8, 256), (32, 64)])
def test_lanes_that_go_across_touch_a_sector_with_many_warps(apart, sectors):
    x, o = np.ones(256, np.float32), np.zeros(256, np.float32)
    found = on_machine(across, (1,), {"x": x, "o": o}, {"B": 256, "APART": apart})
    assert found.counts("x", "load")["sectors"] == 32 * sectors
    assert found.counts("o", "store")["sectors"] == 32 * 32


@pytest.mark.parametrize("back, sectors", [(False, 16 * 8), (True, 16 * 31)])
def test_a_tile_counts_along_the_axis_on_which_the_compiler_sees_neighbours(back, sectors):
    """It sees none in a reversed order, and deals the tile out along the last axis: 16 sectors for two rows of lanes."""
    x, o = np.ones(64 * 16, np.float32), np.zeros(64 * 16, np.float32)
    found = on_machine(turned, (1,), {"x": x, "o": o}, {"M": 64, "N": 16, "BACK": back})
    assert found.counts("x", "load")["sectors"] == 32 * sectors
    assert found.counts("o", "store")["sectors"] == 32 * 64 * 2
