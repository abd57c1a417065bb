"""Compute C = A B by the kernel and the tile that suit this GPU, these strides and these sizes."""

from dataclasses import dataclass, replace

import torch
import triton
from triton.tools.tensor_descriptor import TensorDescriptor

from kernels.gemm_tiling.gemv import gemv
from kernels.gemm_tiling.tiled_gemm import descriptor_gemm_kernel, tiled_gemm_kernel
from kernels.replays import Replays, form
from kernels.tensors import rows_aligned

WORTH_A_COPY = (
    600**3
)  # multiply-adds (H200, 2026-11-21, where 1023^3 takes 23 us with copies, 34 us through pointers)
FEW = 64  # rows (or columns) below which a GEMM is a stream of the other operand


@dataclass(frozen=True)
class Tile:
    block_m: int
    block_n: int
    block_k: int
    num_warps: int
    num_stages: int
    group_m: int = 8


# Pointer tiles by shape, small enough for any GPU from sm_80 on (100 KB of shared memory), except DEEP.
SMALL, LARGE, WIDE = Tile(64, 64, 64, 4, 4), Tile(128, 128, 32, 8, 4), Tile(128, 128, 64, 8, 3)
THIN = Tile(64, 0, 128, 4, 3, 1)  # block_n follows the few columns
DEEP = Tile(128, 0, 128, 4, 4, 1)  # the same with up to 192 KB in flight, H200, 2026-11-20
DESCRIPTORS = Tile(128, 256, 64, 8, 3)


REPLAYS = Replays()


def gemm(a: torch.Tensor, b: torch.Tensor, out: torch.Tensor | None = None) -> torch.Tensor:
    """Return a (M, K) @ b (K, N) of any strides, summed in fp32. `out` may have any dtype and has a's by default."""
    key = form(a), form(b), form(out)
    ready = REPLAYS.get(key)
    if not ready:
        check(a, b, out)
    if out is None:
        out = torch.empty(a.shape[0], b.shape[1], dtype=a.dtype, device=a.device)
    if ready and ready(a, b, out):
        return out
    with REPLAYS.recording(key, a, b, out):
        dispatch(a, b, out)
    return out


def dispatch(a, b, out):
    (m, k), n = a.shape, b.shape[1]
    capability = torch.cuda.get_device_capability(a.device) if a.is_cuda else (0, 0)
    engine = capability[0] >= 9 and a.itemsize == out.itemsize == 2  # what the large tiles are sized for
    if m == 1:
        gemv(b.t(), a[0], out[0])
    elif min(m, n) <= FEW:
        thin(a, b, out, DEEP if engine else THIN)
    elif engine and k >= 64 and all(map(aligned, (a, b))) and rows_aligned(out):
        fetched(a, b, out)
    elif engine and k >= 64 and m * n * k >= WORTH_A_COPY:
        realigned(a, b, out)
    else:
        pointers(a, b, out, pointer_tile(m, n, capability))


def check(a, b, out):
    if a.ndim != 2 or b.ndim != 2 or a.shape[1] != b.shape[0]:
        shapes = f"{tuple(a.shape)} and {tuple(b.shape)}"
        raise ValueError(f"a and b must be (M, K) and (K, N), got {shapes}; transpose b or pick other sizes")
    if a.dtype != b.dtype:
        raise ValueError(f"b must be {a.dtype} as a is, got {b.dtype}; convert one of them")
    shape = (a.shape[0], b.shape[1])
    if out is not None and tuple(out.shape) != shape:
        raise ValueError(f"out must be {shape}, got {tuple(out.shape)}; leave it out to have it made")


def aligned(x) -> bool:
    return rows_aligned(x) or rows_aligned(x.t())


def pointer_tile(m: int, n: int, capability) -> Tile:
    if m * n < 2048 * 2048:
        return SMALL
    return WIDE if capability[0] >= 9 else LARGE


def pointers(a, b, out, tile: Tile):
    (m, k), n = a.shape, b.shape[1]
    grid = (triton.cdiv(m, tile.block_m) * triton.cdiv(n, tile.block_n),)
    block_k = tile.block_k * 2 // max(2, a.itemsize)  # wider elements, no more shared memory
    tiled_gemm_kernel[grid](
        a,
        b,
        out,
        m,
        n,
        k,
        *a.stride(),
        *b.stride(),
        *out.stride(),
        BLOCK_M=tile.block_m,
        BLOCK_N=tile.block_n,
        BLOCK_K=block_k,
        GROUP_M=tile.group_m,
        num_warps=tile.num_warps,
        num_stages=tile.num_stages,
    )


def thin(a, b, out, tile: Tile):
    """Multiply few rows or columns. The long operand streams through as the tile's rows, and the other one stays."""
    if b.shape[1] > a.shape[0]:
        a, b, out = b.t(), a.t(), out.t()
    block_n = max(16, triton.next_power_of_2(b.shape[1]))
    pointers(a, b, out, replace(tile, block_n=block_n))


def fetched(a, b, out):
    """Let the copy engine fetch rows (of the matrix or its transpose), which must start on 16 bytes."""
    is_hopper = a.is_cuda and torch.cuda.get_device_capability(a.device)[0] == 9
    (hopper if is_hopper else descriptors)(a, b, out)


def realigned(a, b, out):
    """Copy odd rows to aligned memory. A copy moves n^2 elements to let n^3 multiply-adds run at the copy engine's
    pace."""
    a, b = (x if aligned(x) else widened(x).copy_(x) for x in (a, b))
    if rows_aligned(out):
        return fetched(a, b, out)
    wide = widened(out)
    fetched(a, b, wide)
    out.copy_(wide)


def widened(x):
    """Return room for x with rows a multiple of 128 bytes apart."""
    step = 128 // x.itemsize
    rows, cols = x.shape
    return x.new_empty(rows, triton.cdiv(cols, step) * step)[:, :cols]


def hopper(a, b, out):
    from kernels.gemm_tiling import hopper_gemm

    processors = multiprocessors(a)
    linear = a.stride(1) == 1 != b.stride(1)
    config, width = hopper_gemm.pick(a.shape[0], b.shape[1], a.shape[1], processors, linear)
    return hopper_gemm.launch(a, b, out, config, processors, width)


def descriptors(a, b, out, tile: Tile = DESCRIPTORS):
    (m, k), n = a.shape, b.shape[1]
    a_t, b_t = not rows_aligned(a), not rows_aligned(b)
    block_m, block_n, block_k = tile.block_m, tile.block_n, tile.block_k
    tiles = triton.cdiv(m, block_m) * triton.cdiv(n, block_n)
    describe = TensorDescriptor.from_tensor
    descriptor_gemm_kernel[(min(tiles, multiprocessors(a)),)](
        describe(a.t(), [block_k, block_m]) if a_t else describe(a, [block_m, block_k]),
        describe(b.t(), [block_n, block_k]) if b_t else describe(b, [block_k, block_n]),
        describe(out, [block_m, block_n // 2]),
        m,
        n,
        k,
        A_T=a_t,
        B_T=b_t,
        BLOCK_M=block_m,
        BLOCK_N=block_n,
        BLOCK_K=block_k,
        GROUP_M=tile.group_m,
        num_warps=tile.num_warps,
        num_stages=tile.num_stages,
    )


def multiprocessors(x) -> int:
    return torch.cuda.get_device_properties(x.device).multi_processor_count if x.is_cuda else 4
