"""Fetch tiles by the copy engine (TMA, from sm_90 on). One thread names a tile, and no thread computes addresses.

That frees registers and instructions, which leaves room for a larger tile.
"""

import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor

from kernels.gemm_tiling.tiled_gemm import tile_of


@triton.jit
def tma_kernel(
    a_desc,
    b_desc,
    c_desc,
    M,
    N,
    K,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
    GROUP_M: tl.constexpr,
):
    tile_m, tile_n = tile_of(tl.program_id(0), tl.cdiv(M, BLOCK_M), tl.cdiv(N, BLOCK_N), GROUP_M)
    acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for k in range(0, K, BLOCK_K):
        a = a_desc.load([tile_m * BLOCK_M, k])  # (BLOCK_M, BLOCK_K)
        b = b_desc.load([k, tile_n * BLOCK_N])  # (BLOCK_K, BLOCK_N)
        acc = tl.dot(a, b, acc)
    c_desc.store([tile_m * BLOCK_M, tile_n * BLOCK_N], acc.to(c_desc.dtype))


def launch(a, b, out, s):
    (m, k), n = a.shape, b.shape[1]
    describe = TensorDescriptor.from_tensor
    return tma_kernel[(s.tiles(out),)](
        describe(a, [s.block_m, s.block_k]),
        describe(b, [s.block_k, s.block_n]),
        describe(out, [s.block_m, s.block_n]),
        m,
        n,
        k,
        **s.meta(),
    )
