"""Un-permute and combine in one pass, in which each token fetches its k rows and adds them in the order of its slots.

The sum is a loop in one program, in fp32, so every run gives the same bits. Scattering with atomic additions would
write the same bytes and add in whatever order the experts finish.
"""

import torch
import triton
import triton.language as tl

from kernels.moe_routing.routed import Routed
from kernels.overlap import can_overlap, let_next_begin, overlapped, wait_for_last


@triton.jit
def combine_kernel(
    rows_ptr,
    topk_weights_ptr,
    inv_permuted_idx_ptr,
    out_ptr,
    H,
    stride_om,
    SLOTS: tl.constexpr,
    BLOCK_H: tl.constexpr,
    EARLY: tl.constexpr,
):
    if EARLY:
        let_next_begin()
        wait_for_last()
    token = tl.program_id(0)
    offs_h = tl.program_id(1) * BLOCK_H + tl.arange(0, BLOCK_H)
    mask_h = offs_h < H
    acc = tl.zeros((BLOCK_H,), tl.float32)
    for slot in tl.static_range(SLOTS):
        row = tl.load(inv_permuted_idx_ptr + token * SLOTS + slot).to(tl.int64)
        weight = tl.load(topk_weights_ptr + token * SLOTS + slot)
        y = tl.load(rows_ptr + row * H + offs_h, mask=mask_h, other=0.0)  # (BLOCK_H,)
        acc += weight * y.to(tl.float32)
    tl.store(out_ptr + token.to(tl.int64) * stride_om + offs_h, acc.to(out_ptr.dtype.element_ty), mask=mask_h)


def combine(rows, found: Routed, out=None) -> torch.Tensor:
    """Return out (tokens, hidden), the weighted sum of each token's rows (rows, hidden)."""
    (tokens, slots), hidden = found.topk_ids.shape, rows.shape[1]
    if out is None:
        out = torch.empty(tokens, hidden, dtype=rows.dtype, device=rows.device)
    if tokens:
        block = min(1024 if tokens > 16 else 256, triton.next_power_of_2(hidden))
        early = can_overlap(out.device)
        combine_kernel[(tokens, triton.cdiv(hidden, block))](
            rows,
            found.topk_weights,
            found.inv_permuted_idx,
            out,
            hidden,
            out.stride(0),
            SLOTS=slots,
            BLOCK_H=block,
            EARLY=early,
            num_warps=max(1, block // 256),
            **overlapped(early),
        )
    return out
