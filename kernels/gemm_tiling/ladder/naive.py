"""Compute one element of C for each lane, with neighbouring lanes below each other.

Rows of A start K numbers apart, so the 32 loads of a warp land in 32 sectors of 32 bytes, for 2 bytes each.
"""

import triton
import triton.language as tl


@triton.jit
def uncoalesced_kernel(a_ptr, b_ptr, c_ptr, N, K, LANES: tl.constexpr):
    n = tl.program_id(0)
    offs_m = tl.program_id(1) * LANES + tl.arange(0, LANES)
    acc = tl.zeros((LANES,), tl.float32)
    for k in range(K):
        a = tl.load(a_ptr + offs_m * K + k)  # (LANES,), each in a row of its own
        b = tl.load(b_ptr + k * N + n)  # one number, the same for every lane
        acc += a.to(tl.float32) * b.to(tl.float32)
    tl.store(c_ptr + offs_m * N + n, acc.to(c_ptr.dtype.element_ty))


def launch(a, b, out, s):
    m, n = out.shape
    return uncoalesced_kernel[(n, m // s.block_m)](
        a, b, out, n, a.shape[1], LANES=s.block_m, num_warps=s.warps, num_stages=s.stages
    )
