"""LayerNorm(GELU(x)): a row is read once, stays in registers, and is written once.

GELU is the exact one, x Phi(x) with Phi the normal distribution function (not the tanh approximation),
computed as max(x, 0) - |x| Q(|x|), where Q, the upper tail, is 2 to the power of a polynomial fitted to
log2 Q. The result is within 1e-7, fp32's own rounding, for a third of the instructions of the library's
erf. They matter: at full bandwidth an H200 has time for some 28 instructions per element.
"""

import torch
import triton
import triton.language as tl

LONGEST_ROW = 32768  # 64 elements a thread


@triton.jit
def gelu(x):
    z = tl.minimum(tl.abs(x), 10.0)  # the tail is 0 long before; the polynomial is fitted up to 5.5
    p = 3.309294334e-05 * z - 0.0007692207582
    p = p * z + 0.00808071997
    p = p * z - 0.05341210961
    p = p * z - 0.4587709606
    p = p * z - 1.151201725
    p = p * z - 0.9999930859
    return tl.maximum(x, 0.0, propagate_nan=tl.PropagateNan.ALL) - z * tl.exp2(p)


@triton.jit
def layernorm_gelu_kernel(
    x_ptr, weight_ptr, bias_ptr, y_ptr, rows, cols, stride_x, stride_y, eps,
    BLOCK: tl.constexpr,
):  # fmt: skip
    offs = tl.arange(0, BLOCK)
    mask = offs < cols
    weight = tl.load(weight_ptr + offs, mask=mask, other=0.0).to(tl.float32)  # (BLOCK,)
    bias = tl.load(bias_ptr + offs, mask=mask, other=0.0).to(tl.float32)  # (BLOCK,)
    for row in range(tl.program_id(0).to(tl.int64), rows, tl.num_programs(0)):
        x = tl.load(x_ptr + row * stride_x + offs, mask=mask, other=0.0).to(tl.float32)  # (BLOCK,)
        g = gelu(x)
        mean = tl.sum(g, axis=0) / cols
        centred = tl.where(mask, g - mean, 0.0)
        scale = tl.rsqrt(tl.sum(centred * centred, axis=0) / cols + eps)
        y = centred * scale * weight + bias
        tl.store(y_ptr + row * stride_y + offs, y.to(y_ptr.dtype.element_ty), mask=mask)


def layernorm_gelu(
    x, weight, bias, eps: float = 1e-5, out=None, num_warps: int | None = None
) -> torch.Tensor:
    """LayerNorm over the last dimension of GELU(x); x (rows, cols) with contiguous rows, any row stride."""
    rows, cols = check(x, weight, bias)
    out = torch.empty_like(x, memory_format=torch.contiguous_format) if out is None else out
    block = triton.next_power_of_2(cols)
    layernorm_gelu_kernel[(rows,)](
        x, weight, bias, out, rows, cols, x.stride(0), out.stride(0), eps,
        BLOCK=block, num_warps=num_warps or min(16, max(1, block // 1024)),
    )  # fmt: skip
    return out


def check(x, weight, bias) -> tuple[int, int]:
    if x.ndim != 2 or (x.shape[1] > 1 and x.stride(1) != 1):
        raise ValueError(
            f"x must be (rows, cols) with contiguous rows, got {tuple(x.shape)}, strides {x.stride()}"
        )
    rows, cols = x.shape
    if cols > LONGEST_ROW:
        raise ValueError(
            f"x must have at most {LONGEST_ROW} columns, got {cols}; a row must fit in registers"
        )
    for name, vector in (("weight", weight), ("bias", bias)):
        if tuple(vector.shape) != (cols,) or not vector.is_contiguous():
            raise ValueError(f"{name} must be contiguous of shape ({cols},), got {tuple(vector.shape)}")
    return rows, cols
