"""Give each program a tile of C, so that a number loaded once serves a whole row or column of the tile.

The products still run on the CUDA cores, one multiply-add for each lane and cycle, because "ieee" keeps fp32 off the
tensor cores. With GROUP_M above 1, programs that run together share strips of A and B in the L2.
"""

import triton
import triton.language as tl

from kernels.gemm_tiling.tiled_gemm import tile_of


@triton.jit
def tiles_kernel(
    a_ptr,
    b_ptr,
    c_ptr,
    M,
    N,
    K,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
    GROUP_M: tl.constexpr,
):
    tile_m, tile_n = tile_of(tl.program_id(0), M // BLOCK_M, N // BLOCK_N, GROUP_M)
    offs_m = tile_m * BLOCK_M + tl.arange(0, BLOCK_M)
    offs_n = tile_n * BLOCK_N + tl.arange(0, BLOCK_N)
    offs_k = tl.arange(0, BLOCK_K)
    acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for k in range(0, K, BLOCK_K):
        a = tl.load(a_ptr + offs_m[:, None] * K + (k + offs_k)[None, :])  # (BLOCK_M, BLOCK_K)
        b = tl.load(b_ptr + (k + offs_k)[:, None] * N + offs_n[None, :])  # (BLOCK_K, BLOCK_N)
        acc = tl.dot(a.to(tl.float32), b.to(tl.float32), acc, input_precision="ieee")
    tl.store(c_ptr + offs_m[:, None] * N + offs_n[None, :], acc.to(c_ptr.dtype.element_ty))


def launch(a, b, out, s):
    (m, k), n = a.shape, b.shape[1]
    return tiles_kernel[(s.tiles(out),)](a, b, out, m, n, k, **s.meta())
