"""Every kernel against the reference: interpreted where there is no GPU, compiled where there is one."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from kernels.compare import relative_error
from kernels.machines import machine
from kernels.quantization_layouts import cases, cost, reference
from kernels.quantization_layouts.dequantize import dequantize, library
from kernels.quantization_layouts.direct import Direct, direct
from kernels.quantization_layouts.packed import pack
from kernels.quantization_layouts.stream import Stream, stream
from kernels.quantization_layouts.tile import Tile, tile
from kernels.tensors import to_numpy, to_torch

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
ROUNDING = {"fp16": 5e-4, "bf16": 4e-3}  # of a 16-bit result
SLOW = () if DEVICE == "cuda" else pytest.mark.slow  # without a GPU a launch takes part of a second
DIRECT = Direct(1, 2, 256), pytest.param(Direct(2, 1, 256, 16, False), marks=SLOW)
STREAMS = {"tensor cores": Stream(warps=2, run=256), "scalar": Stream(warps=2, run=256, tensor=False)}


def drawn(case, seed=0):
    """(x, packed weight, what x times the weight is)."""
    q = list(cases.quantized(case, seed))
    x = cases.activations(case, seed)
    each = x.reshape(case.experts, case.m, case.k)
    expected = np.concatenate(
        [reference.linear(a, reference.values(b)) for a, b in zip(each, q, strict=True)]
    )
    return to_torch(x, DEVICE), pack(q, DEVICE), expected


def filled(x, w):
    return torch.full((x.shape[0], w.n), float("nan"), device=DEVICE).to(x.dtype)


def right(case, out, expected):
    assert relative_error(to_numpy(out), expected) < ROUNDING[case.dtype]


@pytest.mark.parametrize("unit", STREAMS)
@pytest.mark.parametrize("case", cases.CORRECT, ids=lambda c: c.name)
def test_stream_is_the_product(case, unit):
    x, w, expected = drawn(case)
    right(case, stream(x, w, filled(x, w), config=STREAMS[unit]), expected)


@pytest.mark.parametrize("config", DIRECT, ids=str)
@pytest.mark.parametrize("case", cases.CORRECT, ids=lambda c: c.name)
def test_direct_is_the_product(case, config):
    x, w, expected = drawn(case)
    right(case, direct(x, w, filled(x, w), config=config), expected)


@pytest.mark.parametrize("case", cases.MANY_ROWS, ids=lambda c: c.name)
def test_tile_is_the_product(case):
    x, w, expected = drawn(case)
    right(case, tile(x, w, filled(x, w)), expected)


@pytest.mark.parametrize("case", cases.GROUPED, ids=lambda c: c.name)
def test_experts_in_one_launch(case):
    x, w, expected = drawn(case)
    right(case, stream(x, w, filled(x, w)), expected)
    right(case, stream(x, w, filled(x, w), config=STREAMS["scalar"]), expected)
    right(case, direct(x, w, filled(x, w)), expected)
    right(case, tile(x, w, filled(x, w), config=Tile(4, 16)), expected)
    right(case, library(x, w, filled(x, w)), expected)


@pytest.mark.parametrize("case", (*cases.CORRECT[3:8], cases.GROUPED[1]), ids=lambda c: c.name)
def test_unpacked_weights_are_the_references(case):
    _, w, _ = drawn(case)
    q = [reference.values(one) for one in cases.quantized(case)]
    expected = q[0] if case.experts == 1 else np.stack(q)
    rows = to_numpy(dequantize(w))
    step = 2.0 ** (-11 if case.dtype == "fp16" else -8)
    assert (np.abs(rows.astype(np.float64) - expected) <= np.abs(expected) * step + 2.0**-24).all()
    assert np.array_equal(to_numpy(dequantize(w, transposed=True)), np.swapaxes(rows, -1, -2))


@settings(max_examples=12 if DEVICE == "cuda" else 6)
@given(
    rows=st.lists(st.integers(0, 5), min_size=2, max_size=4),
    form=st.sampled_from(("int4", "zero", 2, 3, 4, 5)),
    group=st.sampled_from(reference.GROUPS),
    dtype=st.sampled_from(("fp16", "bf16")),
    n=st.integers(1, 70),
    groups=st.integers(1, 3),
    seed=st.integers(0, 99),
)
def test_ragged_experts_of_any_form(rows, form, group, dtype, n, groups, seed):
    """Any number of rows an expert, none among them; any N, K, group, bits and dtype."""
    bits, kind = (4, "int4") if isinstance(form, str) else (form, "book")
    case = cases.Case(1, n, groups * group, bits, kind, group, form == "zero", dtype, len(rows))
    q = list(cases.quantized(case, seed))
    w = pack(q, DEVICE)
    ends = np.concatenate([[0], np.cumsum(rows)]).astype(np.int32)
    x = np.random.default_rng(seed).standard_normal((ends[-1], case.k)).astype(q[0].scales.dtype)
    values = [reference.values(one) for one in q]
    parts = [reference.linear(x[a:b], v) for a, b, v in zip(ends, ends[1:], values, strict=False)]
    offsets, a = torch.from_numpy(ends).to(DEVICE), to_torch(x, DEVICE)
    for launch, config in (
        (stream, STREAMS["scalar"]),
        (stream, STREAMS["tensor cores"]),
        (direct, Direct(1, 2, 256)),
        (tile, Tile(4, 16)),
    ):
        out = launch(a, w, filled(a, w), offsets, max(rows), config)
        right(case, out, np.concatenate(parts))


def test_what_lies_outside_a_view_is_left_alone():
    case = cases.CORRECT[1]
    x, w, expected = drawn(case)
    home = torch.zeros(case.m + 2, case.n + 6, device=DEVICE, dtype=x.dtype)
    for launch in (stream, direct, tile):
        view = home[1:-1, 2 : 2 + case.n]
        right(case, launch(x, w, view), expected)
        view.zero_()
        assert not home.any()


def test_infinite_activations_are_not_hidden():
    x, w, _ = drawn(cases.CORRECT[0])
    x[0, 5] = float("inf")
    for launch in (stream, direct, tile):
        assert not launch(x, w).isfinite().any()


def test_rows_that_are_not_dense_or_start_off_16_bytes():
    case = cases.CORRECT[1]
    x, w, expected = drawn(case)
    home = torch.randn(case.m, 2 * case.k + 3, device=DEVICE).to(x.dtype)
    home[:, 3::2] = x
    right(case, stream(home[:, 3::2], w), expected)
    right(case, direct(home[:, 3::2], w), expected)
    home[:, 1 : case.k + 1] = x
    right(case, tile(home[:, 1 : case.k + 1], w), expected)


def test_no_rows_and_no_launch():
    _, w, _ = drawn(cases.CORRECT[0])
    nothing = torch.empty(0, w.k, device=DEVICE, dtype=w.dtype)
    assert stream(nothing, w).shape == direct(nothing, w).shape == tile(nothing, w).shape == (0, w.n)


def test_packed_weights_take_the_bits_that_they_promise():
    for case in (cases.Case(1, 128, 512), *(cases.book(1, 128, 512, bits) for bits in (2, 3, 4, 5))):
        _, w, _ = drawn(case)
        assert sum(part.nbytes for part in w.words) * 8 == case.n * case.k * case.bits
        assert w.scales.nbytes * 8 == case.n * case.k // case.group * 16


@pytest.mark.skipif(DEVICE == "cuda", reason="the machine counts")
@pytest.mark.parametrize(
    "case",
    (cases.book(9, 40, 512, 4), cases.Case(2, 32, 256), cases.book(3, 16, 256, 3)),
    ids=lambda c: c.name,
)
def test_the_bytes_that_a_launch_asks_for_are_the_cost_models(case, watch):
    """Each word once for every eight rows of X, and no padding that a program does not own."""
    x, w, expected = drawn(case)
    words, scales, rows = [watch(part) for part in w.words], watch(w.scales), watch(x)
    right(case, stream(x, w, config=Stream(1, 2, 256)), expected)
    bound = cost.stream_bytes(case.m, case.n, case.k, case.bits, case.group)
    assert sum(moved.loaded for moved in words) == bound.words
    assert (scales.loaded, rows.loaded) == (bound.scales, bound.x)
    assert sum(moved.distinct for moved in words) * 4 * -(-case.m // 8) == bound.words
    zeros = w.zeros is not None
    whole = cost.packed_bytes(case.n, case.k, case.bits, case.group, zeros)
    assert w.bytes - (0 if w.book is None else w.book.nbytes) == whole


def test_integer_instructions_fit_under_the_weight_stream():
    """Why tensor cores multiply even one row: unpacking alone is most of what an H200 has time for."""
    h200, weights = machine("H200"), 28672 * 8192
    stream_s = cost.linear_cost(1, 28672, 8192, bits=4, group=128).bytes_moved / h200.bandwidth
    spent = [
        cost.unpack_s(weights, cost.unpack_per_weight(kind, 4), h200.sms, h200.clock_hz)
        for kind in ("int4", "book")
    ]
    assert spent[0] < 0.6 * stream_s < stream_s < spent[1] < 2 * stream_s
