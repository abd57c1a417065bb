"""A learner's plans for the capstone's own two slots, written plainly here, are the step's kernels."""

import pytest
import torch
import triton
import triton.language as tl

from kernels.next_bottleneck import learner, plain, reference
from kernels.next_bottleneck.shapes import Shape
from kernels.next_bottleneck.slots import BY_NAME, guarded
from kernels.tests.figures import REFUSAL

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
SHAPE = Shape(48, 1, 4, 2, 16, experts=4, top_k=2, intermediate=32, vocabulary=40, page=4, group=16)


@triton.jit
def add_norm(
    x_ptr, r_ptr, w_ptr, y_ptr, sum_ptr, N, eps, stride_xm, stride_rm, stride_ym, BLOCK: tl.constexpr
):
    row, offs = tl.program_id(0), tl.arange(0, BLOCK)
    mask = offs < N
    r = tl.load(r_ptr + row * stride_rm + offs, mask=mask, other=0.0)
    r = (r.to(tl.float32) + tl.load(x_ptr + row * stride_xm + offs, mask=mask, other=0.0).to(tl.float32)).to(
        r.dtype
    )
    tl.store(r_ptr + row * stride_rm + offs, r, mask=mask)
    wide = r.to(tl.float32)
    tl.store(sum_ptr + row, tl.sum(wide * wide, 0))
    tl.debug_barrier()
    y = (
        wide
        * tl.rsqrt(tl.load(sum_ptr + row) / N + eps)
        * tl.load(w_ptr + offs, mask=mask, other=0.0).to(tl.float32)
    )
    tl.store(y_ptr + row * stride_ym + offs, y.to(y_ptr.dtype.element_ty), mask=mask)


def launch_norm(p):
    step = {
        "kernel": add_norm,
        "grid": (p.M,),
        "constexprs": {"BLOCK": triton.next_power_of_2(p.N)},
        "num_warps": 1,
    }
    return {"scratch": {"sum": ((p.M,), "fp32", 0)}, "steps": [step]}


@triton.jit
def turn(
    x_ptr, lens_ptr, table_ptr, turns_ptr, wq_ptr, wk_ptr, q_ptr, k_ptr, v_ptr, eps,
    stride_xt, stride_tablet, stride_turnsp, stride_qt, stride_qh, stride_kp, stride_kh, stride_ks,
    stride_vp, stride_vh, stride_vs, H: tl.constexpr, G: tl.constexpr, D: tl.constexpr, S: tl.constexpr,
):  # fmt: skip
    t = tl.program_id(0)
    offs = tl.arange(0, D)
    other = (offs + D // 2) % D
    sign = tl.where(offs < D // 2, -1.0, 1.0)
    at = tl.load(lens_ptr + t) - 1
    page = tl.load(table_ptr + t * stride_tablet + at // S)
    cos = tl.load(turns_ptr + at * stride_turnsp + offs % (D // 2))
    sin = tl.load(turns_ptr + at * stride_turnsp + D // 2 + offs % (D // 2))
    for head in range(H + G):
        x = tl.load(x_ptr + t * stride_xt + head * D + offs).to(tl.float32)
        pair = tl.load(x_ptr + t * stride_xt + head * D + other).to(tl.float32)
        rms = tl.rsqrt(tl.sum(x * x, 0) / D + eps)
        if head < H:
            x = x * rms * tl.load(wq_ptr + offs).to(tl.float32)
            pair = pair * rms * tl.load(wq_ptr + other).to(tl.float32)
            y = (x * cos + sign * pair * sin).to(q_ptr.dtype.element_ty)
            tl.store(q_ptr + t * stride_qt + head * stride_qh + offs, y)
        else:
            x = x * rms * tl.load(wk_ptr + offs).to(tl.float32)
            pair = pair * rms * tl.load(wk_ptr + other).to(tl.float32)
            y = (x * cos + sign * pair * sin).to(k_ptr.dtype.element_ty)
            g = head - H
            tl.store(k_ptr + page * stride_kp + g * stride_kh + at % S * stride_ks + offs, y)
            v = tl.load(x_ptr + t * stride_xt + (head + G) * D + offs)
            tl.store(v_ptr + page * stride_vp + g * stride_vh + at % S * stride_vs + offs, v)


def launch_turn(p):
    constants = {"H": p.H, "G": p.G, "D": p.D, "S": p.S}
    return {"steps": [{"kernel": turn, "grid": (p.T,), "constexprs": constants, "num_warps": 1}]}


def half(*size, seed=0):
    return torch.randn(*size, generator=torch.Generator().manual_seed(seed)).half().to(DEVICE)


@pytest.mark.parametrize("first", [True, False])
def test_a_norm_of_one_s_own(first):
    mine = learner.fill({"next_bottleneck.residual_norm": launch_norm})["norm"]
    weight, x = half(48), None if first else half(3, 48, seed=1)
    residuals = [half(3, 48, seed=2) for _ in range(2)]
    calls = (guarded(BY_NAME["norm"], make(weight, SHAPE), SHAPE) for make in (mine.make, plain.norm))
    got, want = (call(x, residual) for call, residual in zip(calls, residuals, strict=True))
    torch.testing.assert_close(got, want, atol=2e-3, rtol=2e-3)
    assert torch.equal(*residuals)


def test_a_rotary_of_one_s_own():
    mine = learner.fill({"next_bottleneck.rotary_cache": launch_turn})["rotary"]
    turns = torch.from_numpy(reference.turns(12, 16, 1e4)).float().to(DEVICE)
    weight = half(16, seed=1), half(16, seed=2), turns
    lens = torch.tensor([1, 6, 12], dtype=torch.int32, device=DEVICE)
    table = torch.tensor([[3, 0, 0], [1, 2, 0], [4, 5, 6]], dtype=torch.int32, device=DEVICE)
    caches = [
        [torch.zeros(7, 2, 4, 16, dtype=torch.float16, device=DEVICE) for _ in range(2)] for _ in range(2)
    ]
    calls = (guarded(BY_NAME["rotary"], make(weight, SHAPE), SHAPE) for make in (mine.make, plain.rotary))
    got, want = (call(half(3, 128), lens, table, *pair) for call, pair in zip(calls, caches, strict=True))
    torch.testing.assert_close(got, want, atol=4e-3, rtol=4e-3)
    for mine, theirs in zip(*caches, strict=True):
        torch.testing.assert_close(mine, theirs, atol=4e-3, rtol=4e-3)
    assert caches[0][0].abs().sum(-1).count_nonzero() == 6, "a key of each row and head, and no other"


def test_a_kernel_that_asks_for_what_there_is_not_is_refused():
    asking = {"kernel": turn, "grid": (1,), "constexprs": {}}
    call = learner.norm(lambda p: {"steps": [asking]}).make(half(48), SHAPE)
    with pytest.raises(ValueError, match=REFUSAL) as refused:
        call(None, half(3, 48))
    assert "turn must be of known arguments, got lens_ptr" in str(refused.value)
    call = learner.norm(lambda p: {"steps": [], "scratch": {"a": ((1,), "fp64", 0)}}).make(half(48), SHAPE)
    with pytest.raises(ValueError, match=REFUSAL):
        call(None, half(3, 48))
