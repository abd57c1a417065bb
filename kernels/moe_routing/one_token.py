"""Run one token, with nothing to permute. Its k experts are two streams of weights, and the second one combines as it
goes.

Every expert has one row, so a matmul is a row of dot products on the CUDA cores: the router's rows in parts, then
gate and up of an expert together, then down, whose programs own columns of the output and walk over the experts in
the order of the pairs. Each program of gate and up adds the router's parts and makes the same choice itself, because
waiting for another program would take longer. Weights are read once, h stays in the L2, and only the answer is
written.
"""

from dataclasses import dataclass

import torch
import triton
import triton.language as tl

from kernels.moe_routing.rules import Rule
from kernels.moe_routing.top_k import choose, constants, with_shared


@dataclass(frozen=True)
class Config:
    """Rows of a weight that a program owns, columns that it takes at a time, steps under way."""

    rows: int
    columns: int
    stages: int = 3
    warps: int = 4


# H200, 2026-11-23
SCORES, GATE_UP, DOWN = Config(4, 2048, warps=8), Config(16, 256), Config(4, 1024, warps=2)


@triton.jit
def one_scores_kernel(
    x_ptr,
    router_ptr,
    logits_ptr,
    H,
    E: tl.constexpr,
    BLOCK_E: tl.constexpr,
    BLOCK_H: tl.constexpr,
):
    offs_e = tl.program_id(0) * BLOCK_E + tl.arange(0, BLOCK_E)
    offs_h = tl.program_id(1) * BLOCK_H + tl.arange(0, BLOCK_H)
    mask_e = offs_e < E
    mask_h = offs_h < H
    x = tl.load(x_ptr + offs_h, mask=mask_h, other=0.0).to(tl.float32)  # (BLOCK_H,)
    r_ptrs = router_ptr + offs_e[:, None] * H + offs_h[None, :]
    r = tl.load(r_ptrs, mask=mask_e[:, None] & mask_h[None, :], other=0.0).to(
        tl.float32
    )  # (BLOCK_E, BLOCK_H)
    tl.store(logits_ptr + tl.program_id(1) * E + offs_e, tl.sum(r * x[None, :], 1), mask=mask_e)


@triton.jit
def one_gate_up_kernel(
    x_ptr,
    w_ptr,
    h_ptr,
    logits_ptr,
    bias_ptr,
    topk_ids_ptr,
    topk_weights_ptr,
    parts,
    N,
    K,
    stride_we,
    E: tl.constexpr,
    SHARED: tl.constexpr,
    TOP_K: tl.constexpr,
    SCORES: tl.constexpr,
    RENORMALISE: tl.constexpr,
    GROUPS: tl.constexpr,
    KEPT: tl.constexpr,
    SCALE: tl.constexpr,
    HAS_BIAS: tl.constexpr,
    PARTS: tl.constexpr,
    EP: tl.constexpr,
    KP: tl.constexpr,
    GP: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
    STAGES: tl.constexpr,
):
    slot = tl.program_id(1)
    offs_e = tl.arange(0, EP)
    slots = tl.arange(0, KP)[None, :]
    part = tl.arange(0, PARTS)
    mask = (part < parts)[:, None] & (offs_e < E)[None, :]
    logits = tl.load(logits_ptr + part[:, None] * E + offs_e[None, :], mask=mask, other=0.0)  # (PARTS, EP)
    topk_ids, topk_weights, _ = choose(
        tl.sum(logits, 0)[None, :],
        bias_ptr,
        E,
        TOP_K,
        SCORES,
        RENORMALISE,
        GROUPS,
        KEPT,
        SCALE,
        HAS_BIAS,
        EP,
        KP,
        GP,
    )
    topk_ids, topk_weights = with_shared(topk_ids, topk_weights, slots, E, TOP_K)
    if (tl.program_id(0) == 0) & (slot == 0):
        tl.store(topk_ids_ptr + slots, topk_ids, mask=slots < TOP_K + SHARED)
        tl.store(topk_weights_ptr + slots, topk_weights, mask=slots < TOP_K + SHARED)
    expert = tl.sum(tl.where(slots == slot, topk_ids, 0)).to(tl.int64)
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
def one_down_kernel(
    h_ptr,
    w_ptr,
    out_ptr,
    topk_ids_ptr,
    topk_weights_ptr,
    N,
    K,
    stride_we,
    SLOTS: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
    STAGES: tl.constexpr,
):
    offs_n = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    offs_k = tl.arange(0, BLOCK_K)
    mask_n = (offs_n < N)[:, None]
    acc = tl.zeros((BLOCK_N,), tl.float32)
    steps = tl.cdiv(K, BLOCK_K)
    for step in tl.range(0, SLOTS * steps, num_stages=STAGES):
        slot = step // steps
        k = step % steps * BLOCK_K + offs_k
        expert = tl.load(topk_ids_ptr + slot).to(tl.int64)
        h = tl.load(h_ptr + slot * K + k, mask=k < K, other=0.0).to(tl.float32)  # (BLOCK_K,)
        at = expert * stride_we + offs_n.to(tl.int64)[:, None] * K + k[None, :]
        w = tl.load(w_ptr + at, mask=mask_n & (k < K)[None, :], other=0.0).to(
            tl.float32
        )  # (BLOCK_N, BLOCK_K)
        acc += tl.load(topk_weights_ptr + slot) * tl.sum(w * h[None, :], 1)
    tl.store(out_ptr + offs_n, acc.to(out_ptr.dtype.element_ty), mask=offs_n < N)


def one_token(
    x,
    router,
    experts,
    rule: Rule,
    out,
    bias=None,
    *,
    scores: Config = SCORES,
    first: Config = GATE_UP,
    second: Config = DOWN,
) -> torch.Tensor:
    """out (1, hidden) of x (1, hidden)."""
    count, hidden, wide, slots = (
        len(router),
        experts.hidden,
        experts.intermediate,
        rule.top_k + experts.shared,
    )
    parts = triton.cdiv(hidden, scores.columns)
    logits = torch.empty(parts, count, dtype=torch.float32, device=x.device)
    topk_ids = torch.empty(slots, dtype=torch.int32, device=x.device)
    topk_weights = torch.empty(slots, dtype=torch.float32, device=x.device)
    h = torch.empty(slots, wide, dtype=x.dtype, device=x.device)
    one_scores_kernel[(triton.cdiv(count, scores.rows), parts)](
        x,
        router,
        logits,
        hidden,
        E=count,
        BLOCK_E=scores.rows,
        BLOCK_H=scores.columns,
        num_warps=scores.warps,
    )
    one_gate_up_kernel[(triton.cdiv(wide, first.rows), slots)](
        x,
        experts.gate_up,
        h,
        logits,
        router if bias is None else bias,
        topk_ids,
        topk_weights,
        parts,
        wide,
        hidden,
        experts.gate_up.stride(0),
        E=count,
        SHARED=experts.shared,
        TOP_K=rule.top_k,
        **constants(rule),
        HAS_BIAS=bias is not None,
        PARTS=triton.next_power_of_2(parts),
        EP=max(16, triton.next_power_of_2(count)),
        KP=triton.next_power_of_2(slots),
        **_blocks(first, hidden),
    )
    one_down_kernel[(triton.cdiv(hidden, second.rows),)](
        h,
        experts.down,
        out,
        topk_ids,
        topk_weights,
        hidden,
        wide,
        experts.down.stride(0),
        SLOTS=slots,
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
