"""Compute the exact GELU, x Phi(x) with Phi the normal distribution function, as max(x, 0) - |x| Q(|x|)."""

import triton
import triton.language as tl


@triton.jit
def gelu(x, SHORT: tl.constexpr):
    z = tl.abs(x)
    if SHORT:
        p = -0.02488554 * z - 0.49882036
        p = p * z - 1.12924562
        p = p * z - 1.00353182
    else:
        z = tl.minimum(z, 10.0)  # the tail reaches 0 long before, and this polynomial is fitted up to 5.5
        p = 3.309294334e-05 * z - 0.0007692207582
        p = p * z + 0.00808071997
        p = p * z - 0.05341210961
        p = p * z - 0.4587709606
        p = p * z - 1.151201725
        p = p * z - 0.9999930859
    return tl.maximum(x, 0.0, propagate_nan=tl.PropagateNan.ALL) - z * tl.exp2(p)
