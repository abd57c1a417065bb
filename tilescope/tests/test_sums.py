"""A sum is as exact where the numbers of other programs lie between in memory."""

import numpy as np
import torch
import triton
import triton.language as tl

from tilescope.watching import watch

from .machine_for_tests import on_machine

N, ROWS = 16_384, 12


@triton.jit
def turned_sum(x, out, N: tl.constexpr):
    row, at = tl.program_id(0), tl.arange(0, N)
    v = tl.load(x + row * N + at)
    tl.store(out + row, tl.sum(tl.gather(v, N - 1 - at, 0), 0))


def test_a_long_sum_of_gathered_numbers_is_as_close_as_a_gpus():
    x = torch.tensor(np.random.default_rng(1).uniform(0.5, 1.5, (ROWS, N)).astype(np.float32))
    out = torch.zeros(ROWS)
    with watch():
        turned_sum[(ROWS,)](x, out, N)
    want = x.double().sum(1)
    assert ((out - want).abs() / want).max() < 1e-6


@triton.jit
def first_of_equals(score, at, other, where):
    keep = score >= other
    return tl.where(keep, score, other), tl.where(keep, at, where)


@triton.jit
def best_place(x, o, B: tl.constexpr):
    i = tl.arange(0, B)
    _, place = tl.reduce((tl.load(x + i), i), 0, first_of_equals)
    tl.store(o, place)


def test_either_of_two_operands_may_come_first_in_a_reduction():
    """A GPU's threads exchange what they hold in an order of their own."""
    o = np.full(1, -1, np.int32)
    assert (
        on_machine(best_place, (1,), {"x": np.ones(64, np.float32), "o": o}, {"B": 64}).report.error is None
    )
    assert o[0] > 0
