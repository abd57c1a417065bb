"""Input that cannot be right is told what is wrong with it and what to do, and nothing is written."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from kernels.quantization_layouts import cases, reference
from kernels.quantization_layouts.candidates import CANDIDATES, LIBRARY, SIXTEEN, Layer, layer
from kernels.quantization_layouts.dequantize import dequantize, library
from kernels.quantization_layouts.dispatch import choose, linear
from kernels.quantization_layouts.graphs import capture
from kernels.quantization_layouts.packed import pack
from kernels.quantization_layouts.stream import stream
from kernels.quantization_layouts.tile import tile
from kernels.tests.figures import REFUSAL

CASE = cases.Case(2, 48, 128, group=64, zero_points=True)
(Q,) = cases.quantized(CASE)
W, X = pack(Q), torch.zeros(2, 128, dtype=torch.float16)
MANY = pack([Q, Q, Q])
ENDS = torch.tensor([0, 1, 2, 2], dtype=torch.int32)
ELSEWHERE = W.to("meta")


def weight(**parts):
    return replace(Q, **parts)


NAN = Q.scales.copy()
NAN[3, 1] = np.nan


@pytest.mark.parametrize("run", (stream, tile, library, lambda x, w, *more: linear(x, Layer(w), *more)))
@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        ((X[0], W), "x must be 2-d"),
        ((X[:, :100], W), r"x must be \(rows, 128\)"),
        ((X.bfloat16(), W), "x must be torch.float16"),
        ((X, ELSEWHERE), "w must be on x's device cpu"),
        ((X, replace(W, words=ELSEWHERE.words)), "w.words must be on cpu"),
        ((X, replace(W, zeros=ELSEWHERE.zeros)), "w.zeros must be on cpu"),
        ((X, W, torch.zeros(2, 40).half()), r"out must be \(2, 48\)"),
        ((X, W, torch.zeros(48, 2).half().t()), "out must be dense along a row"),
        ((X, W, torch.zeros(2, 48).half().to("meta")), "out must be on x's device"),
        ((X, MANY), "x must be a multiple of 3 rows"),
    ],
)
def test_layers_refuse(run, arguments, name):
    with pytest.raises(ValueError, match=REFUSAL) as error:
        run(*arguments)
    assert error.match(f"^{name}")


@pytest.mark.parametrize(
    ("refused", "name"),
    [
        (lambda: stream(X, Q), "w must be packed, got Int4"),
        (lambda: linear(X, W), "layer must be a Layer"),
        (lambda: stream(X, MANY, None, ENDS.long()), "offsets must be int32"),
        (lambda: stream(X, MANY, None, ENDS[:-1]), "offsets must be int32"),
        (lambda: tile(X, MANY, None, ENDS.to("meta")), "offsets must be on x's device"),
        (lambda: tile(X, MANY, None, ENDS, 3), "most must be from 0 to the 2 rows"),
        (lambda: dequantize(W, X), r"out must be \(48, 128\)"),
        (lambda: dequantize(W, torch.empty(48, 128)), "out must be torch.float16"),
        (lambda: dequantize(W, torch.empty(128, 48).half().t()), "out must be contiguous"),
        (lambda: CANDIDATES[SIXTEEN].call(X, layer(W), None), "dense must be there"),
        (lambda: choose(layer(W), 0), "rows must be a whole number of at least 1"),
        (lambda: capture(layer(W), 4), "layer must be on a GPU"),
        (lambda: pack(Q.codes), "q must be an Int4 or a KBit"),
        (lambda: pack([]), "q must be a quantized weight or a list of them"),
        (lambda: pack(weight(group=48)), "group must be one of 32, 64, 128 and divide K = 128, got 48"),
        (lambda: pack(weight(codes=Q.codes[:, :127])), "group must be .* divide K = 127, got 64"),
        (lambda: pack(weight(codes=Q.codes.astype(np.int32))), "codes must be uint8"),
        (lambda: pack(weight(codes=Q.codes + 16)), "codes must be below 16"),
        (lambda: pack(weight(scales=Q.scales.T)), r"scales must be \(48, 2\) .*, got \(2, 48\)"),
        (lambda: pack(weight(scales=NAN)), "scales must be finite"),
        (lambda: pack(weight(zeros=Q.zeros[:, :1])), r"zeros must be \(48, 2\)"),
        (lambda: pack([Q, weight(zeros=None)]), "zeros must be there for all experts or none"),
        (
            lambda: pack([Q, next(cases.quantized(cases.Case(1, 40, 128, group=64)))]),
            "experts must be of one shape",
        ),
        (lambda: pack([Q, next(cases.quantized(cases.Case(1, 48, 128)))]), "experts must be alike in group"),
        (lambda: pack([Q, next(cases.quantized(cases.book(1, 48, 128, 3)))]), "experts must be alike in"),
    ],
)
def test_the_rest_refuses(refused, name):
    with pytest.raises(ValueError, match=REFUSAL) as error:
        refused()
    assert error.match(f"^{name}")


def test_a_layer_without_room_makes_it_once_and_keeps_it():
    one = layer(W)
    before = one.workspace()
    CANDIDATES[LIBRARY].call(X, one, None)
    assert one.workspace() is before and np.isfinite(reference.values(Q)).all()
