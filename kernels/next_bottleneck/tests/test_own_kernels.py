"""The step's own kernels against the float64 reference, and the bytes that they move."""

import numpy as np
import pytest
import torch

from kernels.compare import relative_error
from kernels.next_bottleneck import reference
from kernels.next_bottleneck.residual_norm import residual_norm
from kernels.next_bottleneck.rotary_cache import rotary_cache
from kernels.tensors import DTYPES, to_numpy, to_torch
from kernels.tests.figures import REFUSAL

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
ROUNDING = {"fp16": 2e-3, "bf16": 1e-2}


def drawn(rng, *shape, dtype="fp16", scale=1.0):
    return (scale * rng.standard_normal(shape)).astype(DTYPES[dtype])


@pytest.mark.parametrize("added", [True, False])
@pytest.mark.parametrize(
    "rows, n, dtype", [(1, 256, "fp16"), (3, 100, "bf16"), (5, 2048, "bf16"), (2, 1, "fp16")]
)
def test_residual_norm(rows, n, dtype, added):
    """Of 100 columns 28 lanes are idle; a single column is its own maximum."""
    rng = np.random.default_rng(n)
    x, residual = drawn(rng, rows, n, dtype=dtype), drawn(rng, rows, n, dtype=dtype, scale=3)
    weight = drawn(rng, n, dtype=dtype)
    want, kept = reference.residual_norm(x if added else None, residual, weight, 1e-6)
    held = to_torch(residual, DEVICE)
    y = residual_norm(to_torch(x, DEVICE) if added else None, held, to_torch(weight, DEVICE), 1e-6)
    assert relative_error(to_numpy(y), want) < ROUNDING[dtype]
    assert np.array_equal(to_numpy(held), kept), (
        "the residual is rounded once, as addition in 16 bits rounds it"
    )


def test_quantized_rows_are_within_half_a_step_of_the_norm():
    rng = np.random.default_rng(5)
    x, residual, weight = drawn(rng, 4, 96), drawn(rng, 4, 96), drawn(rng, 96)
    x[2], residual[2] = 0, 0
    want, _ = reference.residual_norm(x, residual, weight, 1e-6)
    codes, scales = reference.quantized_rows(want)
    given = (to_torch(one, DEVICE) for one in (x, residual, weight))
    got, got_scales = (to_numpy(one) for one in residual_norm(*given, 1e-6, quantized=True))
    assert got.dtype == np.int8 and np.abs(got.astype(int) - codes).max() <= 1
    assert (got != codes).mean() < 0.02, (
        "only numbers that fall between two codes may be rounded the other way"
    )
    assert relative_error(got_scales, scales) < 1e-5 and got_scales[2] == 1
    assert np.abs(got * got_scales[:, None] - want).max() <= 0.51 * scales.max()


def test_residual_norm_moves_four_rows_and_the_weight(watch):
    if DEVICE != "cpu":
        pytest.skip("bytes are counted on the machine")
    given = [torch.ones(3, 256, dtype=torch.float16) for _ in range(2)] + [
        torch.ones(256, dtype=torch.float16)
    ]
    moved = [watch(one) for one in given]
    residual_norm(*given, 1e-6)
    assert [one.loaded for one in moved] == [3 * 512, 3 * 512, 3 * 512], "a row of weights for each program"
    assert [one.stored for one in moved] == [0, 3 * 512, 0]


@pytest.mark.parametrize(
    "rows, q_heads, kv_heads, d, page, dtype",
    [(1, 4, 2, 64, 16, "fp16"), (5, 6, 1, 128, 4, "bf16"), (3, 2, 2, 48, 8, "fp16")],
)
def test_rotary_cache(rows, q_heads, kv_heads, d, page, dtype):
    """48 is no power of two; what no row's page and place name stays as it was."""
    rng = np.random.default_rng(d)
    qkv = drawn(rng, rows, (q_heads + 2 * kv_heads) * d, dtype=dtype)
    q_norm, k_norm = drawn(rng, d, dtype=dtype), drawn(rng, d, dtype=dtype)
    lens = rng.integers(1, 3 * page + 1, rows).astype(np.int32)
    table = rng.permutation(3 * rows).reshape(rows, 3).astype(np.int32)
    turns = reference.turns(3 * page, d, 1e4)
    q, k, v = reference.rotary(qkv, lens, q_norm, k_norm, turns, kv_heads, 1e-6)
    caches = [
        torch.full((3 * rows, kv_heads, page, d), 7.0, device=DEVICE).to(to_torch(qkv).dtype)
        for _ in range(2)
    ]
    given = (to_torch(one, DEVICE) for one in (qkv, lens, table))
    norms = (to_torch(one, DEVICE) for one in (q_norm, k_norm, turns.astype(np.float32)))
    got = rotary_cache(*given, *caches, *norms, 1e-6)
    assert relative_error(to_numpy(got), q) < ROUNDING[dtype]
    at, within = reference.place(lens, table, page)
    for cache, want in zip(caches, (k, v), strict=True):
        cache = to_numpy(cache)
        assert relative_error(cache[at, :, within], want) < ROUNDING[dtype]
        cache[at, :, within] = 7
        assert (cache == 7).all()


def test_a_position_turns_as_it_should():
    """Position 0 is left as it is; what two turned vectors have in common depends on their distance alone."""
    turns = reference.turns(9, 8, 1e4)
    rng = np.random.default_rng(0)
    q, k = rng.standard_normal((2, 1, 8))
    one = np.ones(8)

    def product(at_q, at_k):
        a, _, _ = reference.rotary(np.concatenate([q, k, k], 1), [at_q + 1], one, one, turns, 1, 0)
        _, b, _ = reference.rotary(np.concatenate([q, k, k], 1), [at_k + 1], one, one, turns, 1, 0)
        return (a * b).sum()

    assert product(5, 2) == pytest.approx(product(8, 5))
    assert product(5, 2) != pytest.approx(product(5, 3))
    a, _, v = reference.rotary(np.concatenate([q, k, k], 1), [1], one, one, turns, 1, 0)
    assert np.allclose(a[0], q / np.sqrt((q**2).mean())) and np.allclose(v[0], k)


def half(*shape):
    return torch.ones(shape, dtype=torch.float16)


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: residual_norm(half(2, 8), half(3, 8), half(8), 1e-6),
        lambda: residual_norm(None, half(3, 8), half(9), 1e-6),
        lambda: residual_norm(None, half(8, 3).t(), half(8), 1e-6),
        lambda: residual_norm(None, half(1, 20000), half(20000), 1e-6),
        lambda: residual_norm(None, half(1, 8), half(8), -1.0),
        lambda: rotary_cache(
            half(2, 30),
            *[torch.ones(2, dtype=torch.int32)] * 2,
            *[half(2, 1, 4, 8)] * 2,
            half(8),
            half(8),
            half(9, 8),
            0,
        ),
        lambda: rotary_cache(
            half(2, 32),
            torch.ones(3).int(),
            torch.ones(2, 1).int(),
            *[half(2, 1, 4, 8)] * 2,
            half(8),
            half(8),
            half(9, 8),
            0,
        ),
        lambda: rotary_cache(
            half(2, 32),
            torch.ones(2).int(),
            torch.ones(2, 1).int(),
            half(2, 1, 4, 8),
            half(2, 1, 5, 8),
            half(8),
            half(8),
            half(9, 8),
            0,
        ),
    ],
)
def test_nonsense_is_refused(wrong):
    with pytest.raises(ValueError, match=REFUSAL):
        wrong()
