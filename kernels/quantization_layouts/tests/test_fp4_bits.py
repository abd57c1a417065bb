"""FP4 multiplied by kernels that make bf16 of a code's bits."""

import pytest
import torch

from kernels.quantization_layouts.bench_formats import BF16_RESULT, Timed, check, draw
from kernels.quantization_layouts.direct import Direct, direct
from kernels.quantization_layouts.formats import by_bits

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


@pytest.mark.parametrize("form", ["mxfp4", "nvfp4"])
@pytest.mark.parametrize(
    ("config", "m"),
    [(Direct(1, 4, 128), 1), (Direct(2, 2, 64, cols=16), 11), (Direct(1, 4, 64, whole=True), 5)],
)
def test_direct_is_the_product(form, config, m):
    inputs = draw(Timed(form, m, 48, 512), 0, DEVICE)
    out = direct(inputs["x"], by_bits(inputs["w"]), config=config)
    assert check(inputs, out) < BF16_RESULT
