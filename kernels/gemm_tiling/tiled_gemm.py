"""Multiply in tiles in plain Triton. Every element of a tile of C is made from one visit to a strip of A and of B.

Two kernels with one idea. `tiled_gemm_kernel` loads through pointers: any GPU, any strides, any size. Programs walk
the tiles of C in groups of GROUP_M rows, so that those running at one time share strips of A and B in the L2.
`descriptor_gemm_kernel` lets the copy engine (TMA, from sm_90 on) fetch the tiles: no address arithmetic, no masks,
one resident program per SM, and the result leaves in halves so that a further stage fits.
"""

import triton
import triton.language as tl


@triton.jit
def tile_of(t, tiles_m, tiles_n, GROUP_M: tl.constexpr):
    """Return the t-th tile: down GROUP_M tiles, then one to the right, the same walk as cost.program_tile."""
    width = GROUP_M * tiles_n
    first = (t // width) * GROUP_M
    rows = min(tiles_m - first, GROUP_M)
    return first + (t % width) % rows, (t % width) // rows


@triton.jit
def tiled_gemm_kernel(
    a_ptr,
    b_ptr,
    c_ptr,
    M,
    N,
    K,
    stride_am,
    stride_ak,
    stride_bk,
    stride_bn,
    stride_cm,
    stride_cn,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
    GROUP_M: tl.constexpr,
):
    tile_m, tile_n = tile_of(tl.program_id(0), tl.cdiv(M, BLOCK_M), tl.cdiv(N, BLOCK_N), GROUP_M)
    offs_m = tile_m.to(tl.int64) * BLOCK_M + tl.arange(0, BLOCK_M)
    offs_n = tile_n.to(tl.int64) * BLOCK_N + tl.arange(0, BLOCK_N)
    offs_k = tl.arange(0, BLOCK_K)
    mask_m = offs_m < M
    mask_n = offs_n < N
    a_ptrs = a_ptr + offs_m[:, None] * stride_am + offs_k[None, :] * stride_ak
    b_ptrs = b_ptr + offs_k[:, None] * stride_bk + offs_n[None, :] * stride_bn
    acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for k in range(0, K, BLOCK_K):
        mask_k = offs_k < K - k
        a = tl.load(a_ptrs, mask=mask_m[:, None] & mask_k[None, :], other=0.0)  # (BLOCK_M, BLOCK_K)
        b = tl.load(b_ptrs, mask=mask_k[:, None] & mask_n[None, :], other=0.0)  # (BLOCK_K, BLOCK_N)
        acc = tl.dot(a, b, acc)
        a_ptrs += BLOCK_K * stride_ak
        b_ptrs += BLOCK_K * stride_bk
    c_ptrs = c_ptr + offs_m[:, None] * stride_cm + offs_n[None, :] * stride_cn
    tl.store(c_ptrs, acc.to(c_ptr.dtype.element_ty), mask=mask_m[:, None] & mask_n[None, :])


@triton.jit
def descriptor_gemm_kernel(
    a_desc,
    b_desc,
    c_desc,
    M,
    N,
    K,
    A_T: tl.constexpr,
    B_T: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
    GROUP_M: tl.constexpr,
):
    tiles_m = tl.cdiv(M, BLOCK_M)
    tiles_n = tl.cdiv(N, BLOCK_N)
    for t in tl.range(tl.program_id(0), tiles_m * tiles_n, tl.num_programs(0), flatten=True):
        tile_m, tile_n = tile_of(t, tiles_m, tiles_n, GROUP_M)
        m = tile_m * BLOCK_M
        n = tile_n * BLOCK_N
        acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
        for step in range(tl.cdiv(K, BLOCK_K)):
            k = step * BLOCK_K
            a = a_desc.load([k, m]).T if A_T else a_desc.load([m, k])  # (BLOCK_M, BLOCK_K)
            b = b_desc.load([n, k]).T if B_T else b_desc.load([k, n])  # (BLOCK_K, BLOCK_N)
            acc = tl.dot(a, b, acc)
        left, right = acc.reshape(BLOCK_M, 2, BLOCK_N // 2).permute(0, 2, 1).split()
        c_desc.store([m, n], left.to(c_desc.dtype))
        c_desc.store([m, n + BLOCK_N // 2], right.to(c_desc.dtype))
