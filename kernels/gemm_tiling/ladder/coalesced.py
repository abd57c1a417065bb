"""Compute the same element for each lane, but with neighbouring lanes adjacent in a row.

A warp's 32 loads of B are 64 bytes in a row, 2 sectors instead of 32. All 32 lanes need the same number of A.
"""

import triton
import triton.language as tl


@triton.jit
def coalesced_kernel(a_ptr, b_ptr, c_ptr, N, K, LANES: tl.constexpr):
    offs_n = tl.program_id(0) * LANES + tl.arange(0, LANES)
    m = tl.program_id(1)
    acc = tl.zeros((LANES,), tl.float32)
    for k in range(K):
        a = tl.load(a_ptr + m * K + k)  # one number, the same for every lane
        b = tl.load(b_ptr + k * N + offs_n)  # (LANES,), side by side
        acc += a.to(tl.float32) * b.to(tl.float32)
    tl.store(c_ptr + m * N + offs_n, acc.to(c_ptr.dtype.element_ty))


def launch(a, b, out, s):
    m, n = out.shape
    return coalesced_kernel[(n // s.block_n, m)](
        a, b, out, n, a.shape[1], LANES=s.block_n, num_warps=s.warps, num_stages=s.stages
    )
