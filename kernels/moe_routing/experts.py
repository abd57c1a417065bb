"""Run a grouped GEMM over ragged experts. Every tile of rows knows its expert, and multiplies with that expert's
weight alone.

Gate and up are two matmuls of the same rows, so SiLU(gate) x up is taken in registers and their sum of 2 x
intermediate columns is never written. Rows are gathered by address, so a tile reads its tokens without a copy. Each
tile's weights stream through shared memory several steps ahead, which is all that matters while an expert has few
tokens. Tiles of one expert are adjacent in the grid, so that the L2 still has one tile's weights for the next. The
grid is the bound of any routing, and a program without a tile exits immediately.
"""

from dataclasses import dataclass, replace
from functools import lru_cache

import torch
import triton
import triton.language as tl

from kernels.moe_routing.routed import Routed


@dataclass(frozen=True)
class Config:
    block_n: int  # columns of the output (gate and up read twice the rows of weights)
    block_k: int
    warps: int
    stages: int
    group: int = 4  # tiles of rows that walk along the columns together


@triton.jit
def tile_of(program, tiles, tiles_n, GROUP: tl.constexpr):
    """Return (tile of rows, tile of columns), over GROUP tiles of rows, then one column further."""
    width = GROUP * tiles_n
    first = program // width * GROUP
    rows = tl.minimum(tiles - first, GROUP)
    return first + program % width % rows, program % width // rows


@triton.jit(do_not_specialize=["tiles"])
def experts_kernel(
    x_ptr,
    w_ptr,
    y_ptr,
    sorted_token_ids_ptr,
    expert_ids_ptr,
    tile_rows_ptr,
    tiles,
    N,
    K,
    stride_xm,
    stride_we,
    GATED: tl.constexpr,
    GATHER: tl.constexpr,
    SLOTS: tl.constexpr,
    EVEN_N: tl.constexpr,
    EVEN_K: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
    GROUP: tl.constexpr,
):
    tile, tile_n = tile_of(tl.program_id(0), tiles, tl.cdiv(N, BLOCK_N), GROUP)
    expert = tl.load(expert_ids_ptr + tile)
    if expert < 0:
        return
    offs_m = tile * BLOCK_M + tl.arange(0, BLOCK_M)
    mask_m = tl.arange(0, BLOCK_M) < tl.load(tile_rows_ptr + tile)
    offs_n = tile_n * BLOCK_N + tl.arange(0, BLOCK_N)
    offs_k = tl.arange(0, BLOCK_K)
    row = offs_m
    if GATHER:
        row = (
            tl.load(sorted_token_ids_ptr + offs_m, mask=mask_m, other=0) // SLOTS
        )  # padding multiplies token 0, and the result is dropped
    row_w = offs_n
    if not EVEN_N:
        row_w = tl.minimum(offs_n, N - 1)
    x_ptrs = x_ptr + row.to(tl.int64)[:, None] * stride_xm + offs_k[None, :]
    w_ptrs = w_ptr + expert.to(tl.int64) * stride_we + row_w.to(tl.int64)[None, :] * K + offs_k[:, None]
    up_ptrs = w_ptrs + N.to(tl.int64) * K
    acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    acc_up = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for k in range(0, K, BLOCK_K):
        if EVEN_K:
            x = tl.load(x_ptrs)  # (BLOCK_M, BLOCK_K)
            w = tl.load(w_ptrs)  # (BLOCK_K, BLOCK_N)
        else:
            x = tl.load(x_ptrs, mask=(offs_k < K - k)[None, :], other=0.0)
            w = tl.load(w_ptrs, mask=(offs_k < K - k)[:, None], other=0.0)
        acc = tl.dot(x, w, acc)
        if GATED:
            if EVEN_K:
                up = tl.load(up_ptrs)
            else:
                up = tl.load(up_ptrs, mask=(offs_k < K - k)[:, None], other=0.0)
            acc_up = tl.dot(x, up, acc_up)
            up_ptrs += BLOCK_K
        x_ptrs += BLOCK_K
        w_ptrs += BLOCK_K
    if GATED:
        acc = acc / (1.0 + tl.exp(-acc)) * acc_up
    y_ptrs = y_ptr + offs_m.to(tl.int64)[:, None] * N + offs_n[None, :]
    tl.store(y_ptrs, acc.to(y_ptr.dtype.element_ty), mask=mask_m[:, None] & (offs_n < N)[None, :])


# By rows of a tile, H200, 2026-11-22. Up to 32 rows the bytes under way decide, from 64 on the tensor cores.
GATED = {
    16: Config(64, 128, 4, 4),
    32: Config(64, 128, 4, 5),
    64: Config(128, 64, 8, 4),
    128: Config(128, 64, 8, 4),
}
PLAIN = {
    16: Config(128, 128, 4, 4),
    32: Config(128, 64, 4, 5),
    64: Config(256, 64, 8, 4),
    128: Config(256, 64, 8, 4),
}
# Before Hopper sums stay in the registers of the warps that load, so half the rows, and fewer steps in flight.
SMALLER, SMALL_ROOM = {64: 64, 128: 64}, 200 * 1024
LEAST_STAGES = 2  # sm_86 and sm_89 have 99 KB of shared memory


def gate_up(x, weight, found: Routed, slots: int, out=None, config: Config | None = None) -> torch.Tensor:
    """(rows, intermediate) = SiLU(x @ gate.T) * (x @ up.T), tokens x (tokens, hidden) gathered by row."""
    n = weight.shape[1] // 2
    if out is None:
        out = torch.empty(found.tiles * found.tile, n, dtype=x.dtype, device=x.device)
    _launch(x, weight, found, out, n, config, GATED=True, GATHER=True, SLOTS=slots)
    return out


def down(h, weight, found: Routed, out=None, config: Config | None = None) -> torch.Tensor:
    """(rows, hidden) = h @ down.T, row by row."""
    n = weight.shape[1]
    if out is None:
        out = torch.empty(len(h), n, dtype=h.dtype, device=h.device)
    _launch(h, weight, found, out, n, config, GATED=False, GATHER=False, SLOTS=1)
    return out


def _launch(x, weight, found: Routed, out, n: int, config: Config | None, **form) -> None:
    k = weight.shape[2]
    config = config or pick(found.tile, form["GATED"], x.device)
    config = fitting(config, found.tile, n, k, form["GATED"], x.device)
    experts_kernel[(found.tiles * triton.cdiv(n, config.block_n),)](
        x,
        weight,
        out,
        found.sorted_token_ids,
        found.expert_ids,
        found.tile_rows,
        found.tiles,
        n,
        k,
        x.stride(0),
        weight.stride(0),
        **form,
        EVEN_N=n % config.block_n == 0,
        EVEN_K=k % config.block_k == 0,
        BLOCK_M=found.tile,
        BLOCK_N=config.block_n,
        BLOCK_K=config.block_k,
        GROUP=config.group,
        num_warps=config.warps,
        num_stages=config.stages,
    )


def pick(tile: int, gated: bool, device) -> Config:
    config = (GATED if gated else PLAIN)[tile]
    if tile in SMALLER and shared_memory(device) < SMALL_ROOM:
        return replace(config, block_n=SMALLER[tile] * (2 - gated), stages=3)
    return config


def fitting(config: Config, tile: int, n: int, k: int, gated: bool, device) -> Config:
    """No wider than the matrix, and no more stages than shared memory holds."""
    block_n = max(16, min(config.block_n, triton.next_power_of_2(n)))
    block_k = max(16, min(config.block_k, triton.next_power_of_2(k)))
    stage = 2 * block_k * (tile + block_n * (1 + gated))
    stages = max(LEAST_STAGES, min(config.stages, (shared_memory(device) - 1024) // stage))
    return replace(config, block_n=block_n, block_k=block_k, stages=stages)


@lru_cache
def shared_memory(device) -> int:
    """Return the bytes that one program may have, an H200's where there is no GPU."""
    if device.type != "cuda":
        return 227 * 1024
    return torch.cuda.get_device_properties(device).shared_memory_per_block_optin
