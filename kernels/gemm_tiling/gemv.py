"""Compute GEMV, y = W x. Each weight is used once, so the only thing to be good at is reading.

A program owns BLOCK_N rows of W and walks them in steps of BLOCK_K, adding products element by element in fp32. The
sum across a row is taken once, at its end. Many loads are in flight at a time, because a step is several 16-byte
loads per thread and several programs share an SM.
"""

from dataclasses import dataclass

import torch
import triton
import triton.language as tl


@dataclass(frozen=True)
class Strip:
    block_n: int
    block_k: int
    num_warps: int
    stages: int = 1
    programs: int = 0  # per SM, or 0 for one program a strip


# K contiguous, so a program reads along rows. H200, 2026-11-20, cold.
ROWS = Strip(4, 1024, 4, 3)  # 28672 x 8192 in 116.5 us
LONG_ROWS = Strip(4, 2048, 8, 4)  # 8192 x 28672 in 116.8 us
FEW_WEIGHTS = Strip(1, 1024, 4)  # 4096 x 4096 in 14.6 us, by more programs rather than more stages
COLUMNS = Strip(64, 64, 4, 3)  # N contiguous, so a program reads 64 neighbours of every row of W's transpose


def pick(w: torch.Tensor) -> Strip:
    n, k = w.shape
    if w.stride(1) != 1 and k > 1:
        return COLUMNS
    if n * k < 2**26:
        return FEW_WEIGHTS
    return ROWS if k <= 16384 else LONG_ROWS


@triton.jit
def gemv_kernel(
    w_ptr,
    x_ptr,
    y_ptr,
    N,
    K,
    stride_wn,
    stride_wk,
    stride_x,
    stride_y,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
    STAGES: tl.constexpr,
):
    for tile in range(tl.program_id(0).to(tl.int64), tl.cdiv(N, BLOCK_N), tl.num_programs(0)):
        offs_n = tile * BLOCK_N + tl.arange(0, BLOCK_N)
        offs_k = tl.arange(0, BLOCK_K)
        mask_n = offs_n < N
        acc = tl.zeros((BLOCK_N, BLOCK_K), tl.float32)
        for k in tl.range(0, K, BLOCK_K, num_stages=STAGES):
            mask_k = k + offs_k < K
            offs_w = offs_n[:, None] * stride_wn + (k + offs_k)[None, :] * stride_wk
            mask = mask_n[:, None] & mask_k[None, :]
            w = tl.load(w_ptr + offs_w, mask, 0.0, eviction_policy="evict_first")  # (BLOCK_N, BLOCK_K)
            x = tl.load(x_ptr + (k + offs_k) * stride_x, mask=mask_k, other=0.0)  # (BLOCK_K,)
            acc += w.to(tl.float32) * x.to(tl.float32)[None, :]
        y = tl.sum(acc, axis=1)
        tl.store(y_ptr + offs_n * stride_y, y.to(y_ptr.dtype.element_ty), mask=mask_n)


def gemv(w: torch.Tensor, x: torch.Tensor, out: torch.Tensor, strip: Strip | None = None) -> torch.Tensor:
    """out (N,) = w (N, K) @ x (K,), any strides."""
    n, k = w.shape
    strip = strip or pick(w)
    tiles = triton.cdiv(n, strip.block_n)
    if strip.programs:
        sms = torch.cuda.get_device_properties(w.device).multi_processor_count if w.is_cuda else 4
        tiles = min(tiles, strip.programs * sms)
    gemv_kernel[(tiles,)](
        w,
        x,
        out,
        n,
        k,
        *w.stride(),
        x.stride(0),
        out.stride(0),
        BLOCK_N=strip.block_n,
        BLOCK_K=strip.block_k,
        STAGES=strip.stages,
        num_warps=strip.num_warps,
    )
    return out
