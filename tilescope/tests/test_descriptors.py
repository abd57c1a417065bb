"""Tensor descriptors made in a kernel: padding, masked stores, rows gathered and scattered, what a GPU asks for."""

import numpy as np
import pytest
import triton
import triton.language as tl

from .machine_for_tests import on_machine


@triton.jit
def doubled(x, o, M, N, B: tl.constexpr, PAD: tl.constexpr):
    d = tl.make_tensor_descriptor(x, [M, N], [N, 1], [B, B], padding_option=PAD)
    e = tl.make_tensor_descriptor(o, [M, N], [N, 1], [B, B])
    i, j = tl.program_id(0) * B, tl.program_id(1) * B
    e.store([i, j], d.load([i, j]) * 2)


def test_tiles_that_hang_over():
    x, o = (
        np.random.default_rng(0).standard_normal((50, 60)).astype(np.float32),
        np.zeros((50, 60), np.float32),
    )
    ran = on_machine(doubled, (4, 4), {"x": x, "o": o}, {"B": 16, "PAD": "zero"}, scalars={"M": 50, "N": 60})
    assert ran.report.error is None and (o == 2 * x).all() and not ran.report.races
    assert ran.counts("x", "load")["dedup"] == x.nbytes and ran.tensors["o"].stores.max() == 1


@triton.jit
def summed(x, o, M, N, B: tl.constexpr, PAD: tl.constexpr):
    d = tl.make_tensor_descriptor(x, [M, N], [N, 1], [B, B], padding_option=PAD)
    v = d.load([-2, N - 4])
    tl.store(o + tl.arange(0, B)[:, None] * B + tl.arange(0, B)[None, :], v)


@pytest.mark.parametrize("padding, beyond", [("zero", 0.0), ("nan", np.nan)])
def test_what_lies_outside_is_padding(padding, beyond):
    x, o = np.arange(64, dtype=np.float32).reshape(8, 8) + 1, np.zeros((8, 8), np.float32)
    ran = on_machine(summed, (1,), {"x": x, "o": o}, {"B": 8, "PAD": padding}, scalars={"M": 8, "N": 8})
    wanted = np.full((8, 8), beyond, np.float32)
    wanted[2:, :4] = x[:6, 4:]
    np.testing.assert_array_equal(o, wanted)
    assert ran.counts("x", "load")["requested"] == 24 * 4


@pytest.mark.parametrize(
    "columns, words", [(50, "multiples of 16 bytes, got 50 elements of 4 bytes for axis 0")]
)
def test_what_the_memory_accelerator_asks_for(columns, words):
    x = np.zeros((8, columns), np.float32)
    scalars = {"M": 8, "N": columns}
    error = on_machine(
        doubled, (1, 4), {"x": x, "o": x.copy()}, {"B": 16, "PAD": "zero"}, scalars=scalars
    ).error
    assert error["kind"] == "Descriptor" and words in error["message"] and error["line"]


@triton.jit
def chosen_rows(x, n, o, M, N, B: tl.constexpr):
    d = tl.make_tensor_descriptor(x, [M, N], [N, 1], [1, B])
    e = tl.make_tensor_descriptor(o, [M, N], [N, 1], [1, B])
    rows = tl.load(n + tl.arange(0, 8))
    e.scatter(d.gather(rows, 8), tl.arange(0, 8), 8)


def test_rows_gathered_and_scattered():
    x, n = (
        np.random.default_rng(1).standard_normal((10, 32)).astype(np.float32),
        np.array([3, 1, 9, 0, 4, 4, 12, 7], np.int32),
    )
    o = np.zeros((8, 32), np.float32)
    ran = on_machine(
        chosen_rows,
        (1,),
        {"x": x, "n": n, "o": o},
        {"B": 16},
        roles={"o": "inout"},
        scalars={"M": 10, "N": 32},
    )
    assert ran.report.error is None, ran.report.error
    wanted = np.zeros((8, 32), np.float32)
    for row, source in enumerate(n):
        wanted[row, 8:24] = x[source, 8:24] if source < 10 else 0
    assert (o == wanted).all()


@triton.jit
def added(x, o, M, N, B: tl.constexpr):
    e = tl.make_tensor_descriptor(o, [M, N], [N, 1], [B, B])
    i = tl.arange(0, B)
    e.atomic_add([0, tl.program_id(0) * 4], tl.load(x + i[:, None] * B + i[None, :]))


def test_a_reduction_into_a_described_tensor():
    x, o = np.ones((8, 8), np.int32), np.zeros((6, 12), np.int32)
    ran = on_machine(added, (2,), {"x": x, "o": o}, {"B": 8}, roles={"o": "inout"}, scalars={"M": 6, "N": 12})
    assert ran.report.error is None, ran.report.error
    assert (o == [1] * 4 + [2] * 4 + [1] * 4).all() and ran.launch.atomics == 6 * 16
