"""FP4 and int8 multiplied by kernels that make bf16 of a code's bits."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from kernels.quantization_layouts.bench_formats import BF16_RESULT, Timed, check, draw, values, widened
from kernels.quantization_layouts.candidates import LIBRARY, layer
from kernels.quantization_layouts.dequantize import dequantize
from kernels.quantization_layouts.direct import Direct, direct
from kernels.quantization_layouts.dispatch import choose
from kernels.quantization_layouts.formats import Narrow, by_bits, by_bytes, linear, prepared
from kernels.quantization_layouts.packed import int8_words
from kernels.quantization_layouts.stream import stream
from kernels.quantization_layouts.tile import tile
from kernels.tensors import to_numpy
from kernels.tests.figures import REFUSAL

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
FORMS = ("mxfp4", "nvfp4")


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    ("config", "m"),
    [(Direct(1, 4, 128), 1), (Direct(2, 2, 64, cols=16), 11), (Direct(1, 4, 64, whole=True), 5)],
)
def test_direct_is_the_product(form, config, m):
    inputs = draw(Timed(form, m, 48, 512), 0, DEVICE)
    out = direct(inputs["x"], by_bits(inputs["w"]), config=config)
    assert check(inputs, out) < BF16_RESULT


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("m", [1, 9, 130])
def test_a_layer_by_any_number_of_rows(form, m):
    inputs = draw(Timed(form, m, 40, 96), 0, DEVICE)
    assert check(inputs, linear(inputs["x"], prepared(inputs["w"]))) < BF16_RESULT


@pytest.mark.parametrize("form", FORMS)
def test_every_code_and_scale_is_exact(form):
    """All sixteen codes under scales that are far apart: unpacked, and one column of X at a time."""
    codes = np.tile(np.arange(16), 4).astype(np.uint8)
    codes = torch.from_numpy(np.stack([codes[::2] | codes[1::2] << 4] * 16)).to(DEVICE)
    groups = torch.arange(16, device=DEVICE)[:, None].expand(16, 64 // (32 if form == "mxfp4" else 16))
    scales = (
        (87 + 6 * groups).to(torch.uint8)
        if form == "mxfp4"
        else torch.exp2(groups.float() - 8).to(torch.float8_e4m3fn)
    )
    w = Narrow(form, codes, scales.contiguous(), 1.0 if form == "mxfp4" else 0.25)
    want = values(w, np.arange(16))
    assert (to_numpy(dequantize(by_bits(w))) == want).all()
    one = torch.eye(64, device=DEVICE, dtype=torch.bfloat16)
    assert (to_numpy(linear(one, prepared(w))).T == want).all()


def test_zero_weights_are_zero():
    w = Narrow("mxfp4", torch.zeros(16, 32, dtype=torch.uint8), torch.zeros(16, 2, dtype=torch.uint8))
    out = linear(torch.ones(3, 64, dtype=torch.bfloat16, device=DEVICE), prepared(w.to(DEVICE)))
    assert not out.any()


def test_a_16_bit_copy_serves_many_rows():
    w = by_bits(draw(Timed("nvfp4", 1, 16, 64), 0, DEVICE)["w"])
    assert [choose(layer(w), m) for m in (129, 4096)] == [LIBRARY] * 2
    assert choose(layer(w, keep_dense=True), 129) == "16 bits"


def test_others_refuse_it():
    inputs = draw(Timed("nvfp4", 2, 16, 64), 0, DEVICE)
    w = by_bits(inputs["w"])
    for call in (stream, tile):
        with pytest.raises(ValueError, match=REFUSAL) as error:
            call(inputs["x"], w)
        assert error.match("^w must be int4 or a codebook, got fp4")
    with pytest.raises(ValueError, match=REFUSAL) as error:
        linear(inputs["x"].half(), prepared(inputs["w"]))
    assert error.match("^x must be torch.bfloat16")
    with pytest.raises(ValueError, match=REFUSAL) as error:
        by_bits(replace(inputs["w"], form="w8a16"))
    assert error.match("^w must be MXFP4 or NVFP4")


def test_bytes_of_int8_are_where_the_operand_wants_them():
    """The ring's own unpacking and order of axes, in whole numbers."""
    numbers = torch.randint(-128, 128, (1, 128, 128), dtype=torch.int8)
    words = int8_words(numbers).view(8, 2, 256).long()  # a brick, a step, its words
    first, second = words.view(8, 2, 128, 2).unbind(-1)
    pairs = torch.stack([half >> byte & 0x00FF00FF for half in (first, second) for byte in (0, 8)], -1)
    both = torch.stack((pairs & 0xFF, pairs >> 16), -1)  # row / 8 and k / 8, k % 2
    value = (both & 0x7F) - (both & 0x80)
    w = value.view(8, 2, 2, 8, 4, 2, 2, 2, 2)  # brick, step, vector, row, pair, piece, row / 8, k / 8, k % 2
    w = w.permute(0, 6, 3, 1, 2, 5, 7, 4, 8).reshape(128, 128)
    assert torch.equal(w.to(torch.int8), numbers[0])


@pytest.mark.parametrize(("n", "k"), [(40, 80), (16, 288)])
def test_int8_of_any_size_is_unpacked_and_multiplied(n, k):
    inputs = draw(Timed("w8a16", 3, n, k), 0, DEVICE)
    w = by_bytes(inputs["w"])
    assert torch.equal(dequantize(w), widened(inputs["w"]))
    assert torch.equal(dequantize(w, transposed=True), widened(inputs["w"]).T)
    assert check(inputs, linear(inputs["x"], layer(w))) < BF16_RESULT


def test_int8_needs_its_own_kernels():
    inputs = draw(Timed("w8a16", 2, 16, 64), 0, DEVICE)
    for call in (direct, stream, tile):
        with pytest.raises(ValueError, match=REFUSAL) as error:
            call(inputs["x"], by_bytes(inputs["w"]))
        assert error.match("^w must be int4.* got int8")
    with pytest.raises(ValueError, match=REFUSAL) as error:
        by_bytes(replace(inputs["w"], form="fp8"))
    assert error.match("^w must be W8A16")
    with pytest.raises(ValueError, match=REFUSAL) as error:
        by_bytes(draw(Timed("w8a16", 1, 16, 36), 0, DEVICE)["w"])
    assert error.match("^w must be of a multiple of 8 columns")
