"""LayerNorm(GELU(x)) against the reference, and the reference against what must hold."""

import math

import numpy as np
import pytest
import torch

from kernels.compare import relative_error
from kernels.roofline import cases, reference
from kernels.roofline.layernorm_gelu import CONFIGS, LONG, Config, config_for, layernorm_gelu
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


@pytest.mark.parametrize("piece, held", [(64, True), (64, False), (128, True), (512, False)])
def test_pieces_of_any_size_give_the_same_answer(piece, held):
    """Rows of 300 in 5 pieces, 3 and 1; of 256 in pieces that end with the row."""
    for case in (cases.Case(5, 300), cases.Case(5, 256)):
        x, weight, bias = (to_torch(v, DEVICE) for v in cases.draw(case))
        want = reference.layernorm_gelu(*cases.draw(case))
        got = to_numpy(layernorm_gelu(x, weight, bias, config=Config(piece, 4, 1, held)))
        assert np.abs(got - want).max() <= ROUNDING["fp32"] * np.abs(want).max()


@pytest.mark.parametrize("cols", (*CONFIGS, 200, 4097, 6145, 12289, 28673, 40000))
def test_every_config_takes_rows_of_its_lengths(cols):
    case = cases.Case(5 if cols < 512 else 2, cols, "bf16")
    got, want = launched(case), reference.layernorm_gelu(*cases.draw(case))
    assert np.abs(got - want).max() <= ROUNDING["bf16"] * np.abs(want).max()
    config = config_for(cols)
    assert config.piece >= 128 * config.warps, "16 bits are loaded at least 8 bytes a lane"


@pytest.mark.parametrize("values", ("normal", "offset", "constant"))
def test_rows_that_no_registers_hold_are_as_exact(values):
    """In pieces of 8192 the last is a quarter full; fp32 takes the same walk from 16,385 columns on."""
    case = cases.Case(3, 8192 * 2 + 2048, values=values)
    assert config_for(case.cols, 4) is LONG
    want = reference.layernorm_gelu(*cases.draw(case))
    limit = LOOSER.get(values, 4 * ROUNDING["fp32"])
    assert np.abs(launched(case) - want).max() <= limit * max(1.0, np.abs(want).max())


LEFT_OVER = {"14336 90 fp32": 48}  # bytes, with Triton 3.7; the config was measured with 3.6
NAMED = ("1024 90", "8192 80", "8192 90", "14336 89", "14336 100", "16384 90", "8192 90 fp32")


@pytest.mark.parametrize("everything", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_nothing_spills_and_as_many_programs_fit_as_are_launched(everything):
    compiled = report("kernels.roofline.tests.compile_all", *NAMED, everything=everything)
    assert set(NAMED) <= set(compiled)
    for name, facts in compiled.items():
        if name.startswith("spread"):
            continue
        assert facts["spilled"] <= LEFT_OVER.get(name, 0), name
        cols, target, *fp32 = name.split()
        if target == "90":  # the configs are an H200's
            c = config_for(int(cols), 4 if fp32 else 2)
            dealt = -(-facts["registers"] // 8) * 8 * 32 * c.warps
            assert dealt * c.programs <= 65536, f"{name}: {facts['registers']} registers"
