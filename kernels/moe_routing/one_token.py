"""One token: nothing to permute. Its k experts are two streams of weights, and the second one combines as it goes.

Every expert has one row, so a matrix product is a row of dot products on the plain arithmetic units: gate and up of an
expert side by side, then down, whose programs own columns of the output and walk over the experts in the order of the
picks. Weights are read once, h stays in the L2, and nothing but the answer is left to write.
"""

from dataclasses import dataclass

import torch
import triton
import triton.language as tl

from kernels.moe_routing.routed import Routed


@dataclass(frozen=True)
class Config:
    """Rows of a weight that a program owns, columns that it takes at a time, steps under way."""

    rows: int
    columns: int
    stages: int = 3
    warps: int = 4


GATE_UP, DOWN = Config(16, 256), Config(4, 1024, warps=2)  # H200, 2026-11-22


@triton.jit
def gate_up_kernel(
    x_ptr,
    w_ptr,
    h_ptr,
    chosen_ptr,
    N,
    K,
    stride_we,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
    STAGES: tl.constexpr,
):
    slot = tl.program_id(1)
    expert = tl.load(chosen_ptr + slot).to(tl.int64)
    offs_n = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    offs_k = tl.arange(0, BLOCK_K)
    mask_n = (offs_n < N)[:, None]
    w_ptrs = w_ptr + expert * stride_we + offs_n.to(tl.int64)[:, None] * K + offs_k[None, :]
    up_ptrs = w_ptrs + N.to(tl.int64) * K
    gate = tl.zeros((BLOCK_N,), tl.float32)
    up = tl.zeros((BLOCK_N,), tl.float32)
    for k in tl.range(0, K, BLOCK_K, num_stages=STAGES):
        mask_k = offs_k < K - k
        x = tl.load(x_ptr + k + offs_k, mask=mask_k, other=0.0).to(tl.float32)  # (BLOCK_K,)
        g = tl.load(w_ptrs + k, mask=mask_n & mask_k[None, :], other=0.0).to(tl.float32)  # (BLOCK_N, BLOCK_K)
        u = tl.load(up_ptrs + k, mask=mask_n & mask_k[None, :], other=0.0).to(tl.float32)
        gate += tl.sum(g * x[None, :], 1)
        up += tl.sum(u * x[None, :], 1)
    h = gate / (1.0 + tl.exp(-gate)) * up
    tl.store(h_ptr + slot * N + offs_n, h.to(h_ptr.dtype.element_ty), mask=offs_n < N)


@triton.jit
def down_kernel(
    h_ptr,
    w_ptr,
    out_ptr,
    chosen_ptr,
    weights_ptr,
    N,
    K,
    stride_we,
    PICKS: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
    STAGES: tl.constexpr,
):
    offs_n = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    offs_k = tl.arange(0, BLOCK_K)
    mask_n = (offs_n < N)[:, None]
    acc = tl.zeros((BLOCK_N,), tl.float32)
    steps = tl.cdiv(K, BLOCK_K)
    for step in tl.range(0, PICKS * steps, num_stages=STAGES):
        slot = step // steps
        k = step % steps * BLOCK_K + offs_k
        expert = tl.load(chosen_ptr + slot).to(tl.int64)
        h = tl.load(h_ptr + slot * K + k, mask=k < K, other=0.0).to(tl.float32)  # (BLOCK_K,)
        at = expert * stride_we + offs_n.to(tl.int64)[:, None] * K + k[None, :]
        w = tl.load(w_ptr + at, mask=mask_n & (k < K)[None, :], other=0.0).to(
            tl.float32
        )  # (BLOCK_N, BLOCK_K)
        acc += tl.load(weights_ptr + slot) * tl.sum(w * h[None, :], 1)
    tl.store(out_ptr + offs_n, acc.to(out_ptr.dtype.element_ty), mask=offs_n < N)


def one_token(x, experts, found: Routed, out, first: Config = GATE_UP, second: Config = DOWN) -> torch.Tensor:
    """out (1, hidden) of x (1, hidden)."""
    picks, wide = found.chosen.shape[1], experts.intermediate
    h = torch.empty(picks, wide, dtype=x.dtype, device=x.device)
    gate_up_kernel[(triton.cdiv(wide, first.rows), picks)](
        x,
        experts.gate_up,
        h,
        found.chosen,
        wide,
        experts.hidden,
        experts.gate_up.stride(0),
        **_blocks(first, experts.hidden),
    )
    down_kernel[(triton.cdiv(experts.hidden, second.rows),)](
        h,
        experts.down,
        out,
        found.chosen,
        found.weights,
        experts.hidden,
        wide,
        experts.down.stride(0),
        PICKS=picks,
        **_blocks(second, wide),
    )
    return out


def _blocks(config: Config, k: int) -> dict:
    return {
        "BLOCK_N": config.rows,
        "BLOCK_K": min(config.columns, triton.next_power_of_2(k)),
        "STAGES": config.stages,
        "num_warps": config.warps,
    }
