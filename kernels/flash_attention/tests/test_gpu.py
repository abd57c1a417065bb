"""The full grids, on a GPU."""

import itertools

import numpy as np
import pytest
import torch

from kernels.flash_attention import arguments, cases, forward
from kernels.flash_attention.backward import attention_backward
from kernels.flash_attention.decode import decode
from kernels.flash_attention.forward import attention
from kernels.flash_attention.forward_hopper_launch import choose_config
from kernels.flash_attention.tests.test_kernels import (
    check_backward,
    check_decode,
    check_forward,
    check_neighbours,
    check_varlen,
)
from kernels.tensors import to_torch

pytestmark = pytest.mark.gpu
GRID = list(cases.grid())


@pytest.mark.parametrize("case", GRID, ids=lambda c: c.name)
def test_forward_grid(case):
    check_forward(case)


@pytest.mark.parametrize(
    "case", [c for c in GRID if c.keys <= 1024 and c.batch == 2][::3], ids=lambda c: c.name
)
def test_backward_grid(case):
    check_backward(case)


@pytest.mark.parametrize("layout", ("heads first", "tokens first"))
@pytest.mark.parametrize("causal", (False, True))
@pytest.mark.parametrize("d", (64, 128))
@pytest.mark.parametrize("length, keys", (*cases.LENGTHS, (4096, 4096)))
def test_backward_with_atomics_and_without(length, keys, d, causal, layout):
    heads, dtype = ((6, 6), (6, 2), (6, 1))[keys % 3], ("bf16", "fp16")[length % 2]
    case = cases.Case(1, *heads, length, keys, d, dtype, causal=causal, layout=layout)
    for deterministic in (False, True):
        check_backward(case, deterministic=deterministic)


@pytest.mark.parametrize("case", list(cases.decode_grid()), ids=lambda c: c.name)
def test_decode_grid(case):
    check_decode(case)


@pytest.mark.parametrize("d", (64, 96, 128, 256))
@pytest.mark.parametrize(
    "options", (dict(), dict(causal=True), dict(window=(100, 30)), dict(softcap=10.0)), ids=str
)
def test_packed_sequences(d, options):
    check_varlen((700, 0, 1, 129, 64), (700, 7, 300, 64, 0), 4, 2, d, "bf16", **options)


@pytest.mark.parametrize("d", (64, 72, 96, 128, 256))
@pytest.mark.parametrize("options", (dict(), dict(causal=True), dict(window=(100, 30))), ids=str)
def test_fp32_finds_room_for_its_tiles(d, options):
    case = cases.Case(1, 4, 2, 300, 333, d, "fp32", **options)
    check_forward(case)
    check_backward(case)
    check_varlen((300, 0, 129), (300, 7, 333), 4, 2, d, "fp32", **options)


@pytest.mark.parametrize("options", (dict(), dict(causal=True), dict(window=(100, 30))), ids=str)
@pytest.mark.parametrize("d", (64, 128))
def test_how_hopper_programs_are_laid_out_does_not_show_in_the_bits(d, options):
    q, k, v = (to_torch(x, "cuda") for x in cases.operands(cases.Case(2, 12, 4, 1111, 1111, d, "bf16")))
    if not arguments.suit_hopper(q, k, v):
        pytest.skip("needs sm_90")
    first = attention(q, k, v, **options)
    left, right = arguments.visible(options.get("causal", False), options.get("window"))
    chosen = choose_config(d, forward.Plan(2, 3, d, 1111, 1111, 1.0, 0.0, left, right))
    for pin, stay in itertools.product((False, True), repeat=2):
        again = attention(q, k, v, config=chosen | {"PIN": pin, "persistent": stay}, **options)
        assert all(torch.equal(a, b) for a, b in zip(first, again, strict=True)), (pin, stay)


@pytest.mark.parametrize("d", (64, 96, 128, 256))
@pytest.mark.parametrize("keys", (0, 1, 64, 100, 128, 200, 391, 512))
def test_packed_neighbours_without_a_finite_number_stay_apart(d, keys):
    masks = (dict(), dict(causal=True), dict(window=(50, 20)), dict(softcap=10.0, causal=True))
    for rubbish, options in itertools.product((float("nan"), float("inf"), -float("inf")), masks):
        check_neighbours(rubbish, (130, 250, 300), (77, keys, 300), 4, 2, d, "bf16", **options)


def test_a_repeat_gives_the_same_bits():
    case = cases.Case(2, 8, 2, 777, 777, 128, causal=True)
    q, k, v = (to_torch(x, "cuda") for x in cases.operands(case))
    runs = []
    for _ in range(3):
        out, lse = attention(q, k, v, causal=True)
        runs.append(
            (
                out,
                lse,
                *attention_backward(out, q, k, v, out, lse, causal=True, deterministic=True),
                decode(q[:, :, 0], k, v)[0],
            )
        )
    for again in runs[1:]:
        assert all(torch.equal(a, b) for a, b in zip(runs[0], again, strict=True))


def test_a_backward_with_atomics_repeats_up_to_the_last_bits_of_dq():
    case = cases.Case(2, 8, 2, 777, 777, 128, causal=True)
    q, k, v = (to_torch(x, "cuda") for x in cases.operands(case))
    out, lse = attention(q, k, v, causal=True)
    first, *runs = (attention_backward(out, q, k, v, out, lse, causal=True) for _ in range(4))
    for dq, dk, dv in runs:
        assert torch.equal(dk, first[1]) and torch.equal(dv, first[2])
        assert (dq - first[0]).float().norm() < 1e-3 * first[0].float().norm()


def test_all_of_the_output_is_written_and_nothing_beside_it():
    case = cases.Case(1, 2, 2, 100, 130, 128)
    q, k, v = (to_torch(x, "cuda") for x in cases.operands(case))
    home = torch.full((3, *q.shape), float("nan"), device="cuda", dtype=q.dtype)
    lse = torch.full((3, *q.shape[:3]), float("nan"), device="cuda")
    plan = forward.Plan(1, 1, 128, 100, 130, 128**-0.5, 0.0, None, None)
    forward._run(q, k, v, home[1], lse[1], plan, None)
    for t in (home, lse):
        assert torch.isfinite(t[1]).all() and torch.isnan(t[0]).all() and torch.isnan(t[2]).all()


def test_extreme_scores_stay_finite():
    case = cases.Case(1, 1, 1, 200, 300, 128)
    q, k, v = (to_torch(x, "cuda") for x in cases.operands(case))
    out, lse = attention(1000 * q, k, v)
    assert torch.isfinite(out).all() and torch.isfinite(lse).all()
    best = (q.double() @ k.double().mT).argmax(-1)
    picked = np.take_along_axis(v.double().cpu().numpy(), best.cpu().numpy()[..., None], axis=2)
    agree = np.abs(out.double().cpu().numpy() - picked).max(axis=-1) < 0.05
    assert agree.mean() > 0.95, "the softmax of huge scores is a choice"
