"""Where a kernel stores, without what it stores: the same places as when it runs whole, and next to nothing to do."""

import numpy as np
import pytest
import triton
import triton.language as tl

from tilescope.machine.module_size import every_op
from tilescope.machine.stores_alone import stores_alone
from tilescope.machine.written_by_waves import indices_by_wave

from .machine_for_tests import Launching, Limits, Storage, lowered, run

B, N = 16, 200


@triton.jit
def summed(x, o, n, B: tl.constexpr):
    at = tl.program_id(0) * B + tl.arange(0, B)
    total = tl.zeros((B,), tl.float32)
    for i in range(0, n, B):
        total += tl.load(x + i + tl.arange(0, B), mask=i + tl.arange(0, B) < n, other=0.0)
    tl.store(o + at, total, mask=at < n)


@triton.jit
def persistent(x, o, n, B: tl.constexpr):
    for tile in range(tl.program_id(0), tl.cdiv(n, B), tl.num_programs(0)):
        at = tile * B + tl.arange(0, B)
        total = tl.zeros((B,), tl.float32)
        for i in range(0, n, B):
            total += tl.load(x + i + tl.arange(0, B), mask=i + tl.arange(0, B) < n, other=0.0)
        tl.store(o + at, total, mask=at < n)


@triton.jit
def leaves_early(x, o, n, B: tl.constexpr):
    at = tl.program_id(0) * B + tl.arange(0, B)
    if tl.program_id(0) * B >= n - B:
        return
    tl.store(o + at, tl.load(x + at, mask=at < n) * 2, mask=at < n)


@triton.jit
def by_number(x, o, n, B: tl.constexpr):
    if tl.program_id(0) % 3 == 1:
        at = tl.program_id(0) * B + tl.arange(0, B)
        tl.store(o + at, tl.exp(tl.load(x + at, mask=at < n)), mask=at < n)


@triton.jit
def by_data(x, o, n, B: tl.constexpr):
    at = tl.program_id(0) * B + tl.arange(0, B)
    value = tl.load(x + at, mask=at < n, other=-1.0)
    tl.store(o + at, tl.sqrt(value), mask=(at < n) & (value > 0))


@triton.jit
def in_a_loop(x, o, n, B: tl.constexpr):
    state = tl.load(x + tl.arange(0, B))
    for i in range(tl.program_id(0) * B, tl.minimum(n, tl.program_id(0) * B + B), 2):
        tl.store(o + i + tl.arange(0, B) * 0, state)
        state = state * 0.5


@triton.jit
def _put(o, at, value, n):
    tl.store(o + at, value, mask=at < n - 3)


@triton.jit
def in_a_function(x, o, n, B: tl.constexpr):
    at = tl.program_id(0) * B + tl.arange(0, B)
    _put(o, at, tl.load(x + at, mask=at < n), n)


@triton.jit
def by_descriptor(x, o, n, B: tl.constexpr):
    out = tl.make_tensor_descriptor(o, [n - 5], [1], [B])
    at = tl.program_id(0) * B
    out.store([at], tl.load(x + at + tl.arange(0, B), mask=at + tl.arange(0, B) < n, other=0.0))


KERNELS = [summed, persistent, leaves_early, by_number, by_data, in_a_loop, in_a_function, by_descriptor]
X = np.linspace(-1, 1, N).astype(np.float32)


def unwritten(kernel, alone: bool):
    module, arguments = lowered(kernel, {"x": X, "o": X}, {"B": B}, {"n": N})
    stored = [Storage("x", 0, X.copy(), "in"), Storage("o", 1, np.full(N, np.nan, np.float32), "out")]
    step = Launching(stores_alone(module) if alone else module, (triton.cdiv(N, B), 1, 1), arguments)
    report = run([step], stored, wave=16, limits=Limits(seconds=20.0), counting="places" if alone else "full")
    assert report.error is None, report.error
    return report.unwritten


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.__name__)
def test_what_is_left_out_is_the_same_as_when_all_is_computed(kernel):
    assert unwritten(kernel, True) == unwritten(kernel, False)


def names(kernel) -> list[str]:
    module, _ = lowered(kernel, {"x": X, "o": X}, {"B": B}, {"n": N})
    return [op.name for f in stores_alone(module).functions.values() for op in every_op(f.blocks)]


@pytest.mark.parametrize("kernel", [summed, persistent, leaves_early, by_number, in_a_function])
def test_nothing_is_loaded_or_computed_for_the_values(kernel):
    found = names(kernel)
    assert "tt.store" in found and not {"tt.load", "arith.addf", "arith.mulf", "math.exp"} & set(found)
    assert found.count("scf.for") == (1 if kernel is persistent else 0)


def test_what_decides_where_is_kept():
    assert "tt.load" in names(by_data) and "math.sqrt" not in names(by_data)


@triton.jit
def by_columns(x, o, n, B: tl.constexpr):
    """Tiles of B x B of a square of 4 B, the programs down its columns; every third program has nothing to do."""
    number = tl.program_id(0) - tl.program_id(0) // 3
    rows = number % 4 * B + tl.arange(0, B)
    columns = number // 4 * B + tl.arange(0, B)
    if tl.program_id(0) % 3 < 2:
        tl.store(
            o + rows[:, None] * n + columns[None, :],
            tl.sum(tl.load(x + columns)) + tl.zeros((B, B), tl.float32),
        )


@pytest.mark.parametrize("alone", [True, False])
def test_what_waves_write_is_told_by_axis(alone):
    side, tile = 64, 16
    given = {"x": X[:side], "o": np.zeros((side, side), np.float32)}
    module, arguments = lowered(by_columns, given, {"B": tile}, {"n": side})
    output = Storage("o", 1, given["o"].copy(), "out", (side, side))
    step = Launching(stores_alone(module) if alone else module, (24, 1, 1), arguments)
    report = run(
        [step],
        [Storage("x", 0, X[:side].copy(), "in"), output],
        wave=5,
        counting="places" if alone else "full",
    )
    assert report.error is None and not report.unwritten
    assert indices_by_wave(output, 4) == [4 * side, 4 * tile], (
        "four working programs a wave: a column of tiles each"
    )
    assert indices_by_wave(output, 8) == [2 * side, 2 * 2 * tile]
    assert indices_by_wave(output, 16) == [side, side]
    assert indices_by_wave(Storage("o", 1, given["o"].copy(), "out", (side, side)), 4) == [0, 0]
