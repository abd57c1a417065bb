"""Multiply the same tiles on the tensor cores, where one instruction multiplies 64 rows by 16 numbers of K.

With one stage a tile is requested when the one before is used up, and the tensor cores wait for memory. With more
stages the next tiles are already in flight while this one is multiplied.
"""

import triton
import triton.language as tl

from kernels.gemm_tiling.tiled_gemm import tile_of


@triton.jit
def tensor_cores_kernel(
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
    a_ptrs = a_ptr + offs_m[:, None] * K + offs_k[None, :]
    b_ptrs = b_ptr + offs_k[:, None] * N + offs_n[None, :]
    acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for _ in range(0, K, BLOCK_K):
        a = tl.load(a_ptrs)  # (BLOCK_M, BLOCK_K)
        b = tl.load(b_ptrs)  # (BLOCK_K, BLOCK_N)
        acc = tl.dot(a, b, acc)
        a_ptrs += BLOCK_K
        b_ptrs += BLOCK_K * N
    tl.store(c_ptr + offs_m[:, None] * N + offs_n[None, :], acc.to(c_ptr.dtype.element_ty))


def launch(a, b, out, s):
    (m, k), n = a.shape, b.shape[1]
    return tensor_cores_kernel[(s.tiles(out),)](a, b, out, m, n, k, **s.meta())
