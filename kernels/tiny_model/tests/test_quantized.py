"""The recorded errors are those of the kept weights, and the divergence is a model's that computes with what the codes mean."""

import numpy as np
import pytest

from kernels.tiny_model import quantized

ROWS = {row["form"]: row for row in quantized.rows()}


@pytest.mark.parametrize("form", quantized.WEIGHTS)
def test_recorded_errors_are_those_of_the_weights_and_of_bells(form):
    assert quantized.weight_error(form, quantized.matrices()) == pytest.approx(ROWS[form]["error"], rel=1e-9)
    assert quantized.weight_error(form, quantized.bells()) == pytest.approx(ROWS[form]["bell"], rel=1e-9)


@pytest.mark.parametrize("form", ["int4, groups of 32", "NVFP4"])
def test_recorded_divergence_is_found_again(form):
    pytest.importorskip("torch")
    found = quantized.measured(form)
    assert found["nats"] == pytest.approx(ROWS[form]["nats"], rel=0.02)
    assert found["changed"] == pytest.approx(ROWS[form]["changed"], abs=0.005)


def test_every_linear_layer_is_there_as_outputs_by_inputs():
    found = quantized.matrices()
    assert len(found) == 2 * (2 + 3 * 8)
    assert found["blocks.0.attention.qkv.weight"].shape == (128, 64)
    assert found["blocks.1.moe.gate.7"].shape == (48, 64) and found["blocks.1.moe.down.0"].shape == (64, 48)


def test_a_scale_per_32_is_taken_from_its_32_numbers():
    w = np.ones((2, 64))
    w[0, :32] = 448 * 1000
    w[0, 33] = 0.5
    np.testing.assert_allclose(quantized.kept_values(w, "FP8, a scale per 32"), w, rtol=1e-6)


def test_narrow_inputs_reach_the_experts_and_not_the_router():
    torch = pytest.importorskip("torch")
    from kernels.tiny_model import kept

    torch.manual_seed(0)
    block, x = kept.model().blocks[0], torch.randn(1, 4, 64)
    with torch.no_grad():
        block.moe(x)
        logits, wide = block.moe.routed[0], block.moe(x)
        quantized._narrow_inputs(block, "MXFP4")
        narrow = block.moe(x)
        assert torch.equal(block.moe.routed[0], logits)
        assert not torch.equal(narrow, wide)
