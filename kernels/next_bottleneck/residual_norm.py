"""Fuse residual and RMSNorm in one launch. The row that two launches would write and read again stays in registers.

Apart, the addition moves three rows and the norm two, in two launches. Together they move four at most, x and the
residual in, the residual and y out. `quantized` writes y as int8 with one scale a row, for a matmul in 8 bits.
"""

import torch
import triton
import triton.language as tl

from kernels.overlap import can_overlap, let_next_begin, overlapped, wait_for_last
from kernels.require import must

LONGEST = 16384  # columns that a program holds


@triton.jit
def residual_norm_kernel(
    x_ptr,
    residual_ptr,
    weight_ptr,
    y_ptr,
    scale_ptr,
    N,
    eps,
    stride_xm,
    stride_rm,
    stride_ym,
    ADD: tl.constexpr,
    QUANTIZED: tl.constexpr,
    BLOCK: tl.constexpr,
    EARLY: tl.constexpr,
):
    if EARLY:
        let_next_begin()
    row = tl.program_id(0).to(tl.int64)
    offs = tl.arange(0, BLOCK)
    mask = offs < N
    weight = tl.load(weight_ptr + offs, mask=mask, other=0.0).to(tl.float32)
    if EARLY:
        wait_for_last()
    at_r = residual_ptr + row * stride_rm + offs
    r = tl.load(at_r, mask=mask, other=0.0)  # (BLOCK,)
    if ADD:
        x = tl.load(x_ptr + row * stride_xm + offs, mask=mask, other=0.0)
        r = (x.to(tl.float32) + r.to(tl.float32)).to(r.dtype)
        tl.store(at_r, r, mask=mask)
    wide = r.to(tl.float32)
    y = wide * tl.rsqrt(tl.sum(wide * wide, 0) / N + eps) * weight
    at_y = y_ptr + row * stride_ym + offs
    if QUANTIZED:
        top = tl.max(tl.abs(y), 0)
        scale = tl.where(top == 0.0, 1.0, top / 127.0)
        tl.store(scale_ptr + row, scale)
        tl.store(at_y, tl.floor(y / scale + 0.5).to(tl.int8), mask=mask)
    else:
        tl.store(at_y, y.to(y_ptr.dtype.element_ty), mask=mask)


def residual_norm(x, residual, weight, eps: float, *, quantized: bool = False, early: bool = False):
    """Return y (rows, N), or int8 codes and fp32 scales (rows,) if quantized. x is added to `residual` itself.

    `early` begins while the launch before runs (kernels/overlap.py): the weight must be at rest.
    """
    must(
        residual.ndim == 2 and residual.stride(1) == 1,
        "residual",
        "2-d and dense along a row",
        f"{tuple(residual.shape)}, strides {residual.stride()}",
        "call .contiguous()",
    )
    (rows, n), device = residual.shape, residual.device
    must(0 < n <= LONGEST, "residual", f"of 1 to {LONGEST} columns", n, "a program holds a whole row")
    for name, given, shape in (("x", x, (rows, n)), ("weight", weight, (n,))):
        if given is None and name == "x":
            continue
        must(tuple(given.shape) == shape, name, str(shape), tuple(given.shape), "as residual says")
        must(given.stride(-1) == 1, name, "dense along a row", given.stride(), "call .contiguous()")
        must(given.device == device, name, f"on {device}", given.device, "move it there")
    must(eps >= 0, "eps", "at least 0", eps, "it keeps a row of zeros from dividing by 0")
    y = torch.empty(rows, n, dtype=torch.int8 if quantized else residual.dtype, device=device)
    scale = torch.empty(rows, dtype=torch.float32, device=device) if quantized else None
    if rows:
        block = triton.next_power_of_2(n)
        early = early and can_overlap(device)
        residual_norm_kernel[(rows,)](
            residual if x is None else x,
            residual,
            weight,
            y,
            y if scale is None else scale,
            n,
            eps,
            0 if x is None else x.stride(0),
            residual.stride(0),
            y.stride(0),
            ADD=x is not None,
            QUANTIZED=quantized,
            BLOCK=block,
            EARLY=early,
            num_warps=min(16, max(1, block // 512)),
            **overlapped(early),
        )
    return (y, scale) if quantized else y
