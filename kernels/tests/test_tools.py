"""Comparing, sampling rows, and tensors that cross between numpy and torch bit for bit."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from kernels.compare import relative_error, spread
from kernels.tensors import DTYPES, laid_out, to_numpy, to_torch


def test_relative_error():
    assert relative_error([3.0, 4.0], [3.0, 4.0]) == 0
    assert relative_error([3.0, 4.0], [3.0, 0.0]) == pytest.approx(4 / 3)
    assert relative_error([1e-3], [0.0]) == pytest.approx(1e-3), "nothing to be relative to"
    for wrong in ([3.0, np.nan], [3.0, np.inf], [3.0]):
        assert relative_error(wrong, [3.0, 4.0]) == float("inf")


@given(st.integers(1, 100), st.integers(1, 1000), st.integers(0, 5))
def test_spread_leaves_no_stretch_out(count, size, seed):
    chosen = spread(count, size, seed)
    assert len(chosen) == min(count, size) and 0 <= chosen.min() and chosen.max() < size
    edges = np.linspace(0, size, min(count, size) + 1).astype(int)
    assert all(low <= at < high for low, at, high in zip(edges, chosen, edges[1:], strict=False))


@pytest.mark.parametrize("name", DTYPES)
def test_every_bit_survives(name):
    dtype = DTYPES[name]
    bits = np.arange(256, dtype=np.uint8) if dtype.itemsize == 1 else np.arange(65536, dtype=np.uint16)
    array = (
        bits.view(dtype) if dtype.itemsize < 4 else np.random.default_rng(0).standard_normal(9, np.float32)
    )
    back = to_numpy(to_torch(array.reshape(1, -1)))
    assert back.dtype == dtype and back.tobytes() == array.tobytes()


@pytest.mark.parametrize("how", ("rows", "columns", "padded", "every second"))
def test_a_layout_keeps_the_values(how):
    x = torch.arange(12.0).reshape(3, 4)
    assert torch.equal(laid_out(x, how), x)
    assert laid_out(x, how).is_contiguous() == (how == "rows")
