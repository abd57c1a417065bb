"""LayerNorm(GELU(x)) against the reference, and the reference against what must hold."""

import math

import numpy as np
import pytest
import torch

from kernels.compare import relative_error
from kernels.roofline import cases, reference
from kernels.roofline.layernorm_gelu import LONGEST_ROW, layernorm_gelu
from kernels.tensors import laid_out, to_numpy, to_torch
from kernels.tests.compiled import report

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
ROUNDING = {"fp32": 2e-6, "fp16": 6e-4, "bf16": 4e-3}
LOOSER = {
    "offset": 2e-3,  # of 1000 + noise, fp32 holds the noise to four digits
    "constant": 1e-4,  # the mean's rounding, times 1 / sqrt(eps) = 316
}


def launched(case, eps=1e-5):
    x, weight, bias = (to_torch(v, DEVICE) for v in cases.draw(case))
    x = laid_out(x, "padded" if case.padded else "rows")
    out = torch.full_like(x, float("nan"), memory_format=torch.contiguous_format)
    return to_numpy(layernorm_gelu(x, weight, bias, eps, out))


@pytest.mark.parametrize("case", cases.CORRECT, ids=lambda c: c.name)
def test_kernel_is_the_reference(case):
    want = reference.layernorm_gelu(*cases.draw(case))
    limit = LOOSER.get(case.values, ROUNDING[case.dtype])
    got = launched(case)
    assert np.isfinite(got).all()
    assert np.abs(got - want).max() <= limit * max(1.0, np.abs(want).max())


def test_eps_is_used():
    case = cases.Case(2, 64, values="constant")
    x, weight, bias = cases.draw(case)
    assert np.allclose(launched(case), np.broadcast_to(bias, x.shape), atol=1e-3)
    small = cases.Case(2, 64)
    assert relative_error(launched(small, 100.0), reference.layernorm_gelu(*cases.draw(small), 100.0)) < 1e-6


def test_gelu_is_the_exact_one_everywhere():
    """A row of two: LayerNorm undone by reading GELU off a row whose other half is known."""
    x = np.linspace(-12, 12, 4001, dtype=np.float32)
    exact = np.array([0.5 * v * (1 + math.erf(v / math.sqrt(2))) for v in x.astype(float)])
    tanh = 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))
    assert np.abs(reference.gelu(x) - exact).max() < 1e-12
    assert np.abs(tanh - exact).max() > 1e-4, "the approximation would show"
    weight, bias = np.ones(4001, np.float32), np.zeros(4001, np.float32)
    got = to_numpy(layernorm_gelu(*(to_torch(v, DEVICE) for v in (x[None], weight, bias))))[0]
    restored = got * np.sqrt(exact.var() + 1e-5) + exact.mean()
    assert np.abs(restored - exact).max() < 1e-5


@pytest.mark.parametrize("value", (float("nan"), float("inf")))
def test_a_nan_stays_in_its_row(value):
    x = torch.ones(3, 70, device=DEVICE) * torch.arange(70, device=DEVICE)
    x[1, 3] = value
    out = layernorm_gelu(x, torch.ones(70, device=DEVICE), torch.zeros(70, device=DEVICE))
    assert out[1].isnan().all() and out[[0, 2]].isfinite().all()


def test_reference_rows_have_mean_0_and_variance_1():
    x = np.random.default_rng(0).standard_normal((4, 500))
    out = reference.layer_norm(x, np.ones(500), np.zeros(500), eps=0)
    assert np.allclose(out.mean(1), 0) and np.allclose(out.var(1), 1)


def test_what_does_not_fit_is_refused():
    ones = torch.ones(4, device=DEVICE)
    for x, name in (
        (torch.ones(4, 4, device=DEVICE).t()[:, ::2], "x"),
        (torch.ones(4, 5, device=DEVICE), "weight"),
    ):
        with pytest.raises(ValueError, match=f"^{name} must "):
            layernorm_gelu(x, ones, ones)
    wide = torch.ones(1, LONGEST_ROW + 1, device=DEVICE)
    with pytest.raises(ValueError, match="^x must have at most"):
        layernorm_gelu(wide, wide[0], wide[0])


def test_nothing_spills():
    for name, facts in report("kernels.roofline.tests.compile_all").items():
        assert facts["spilled"] == 0, name
