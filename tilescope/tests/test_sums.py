"""A sum is as exact where the numbers of other programs lie between in memory."""

import numpy as np
import torch
import triton
import triton.language as tl

from tilescope.watching import watch

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
