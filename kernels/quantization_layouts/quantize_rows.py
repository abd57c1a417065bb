"""Quantize activations to eight bits. Each row's largest magnitude becomes the format's top, undone by a scale.

W8A8 and FP8 pay for this in every step, before the matmul, with one pass over a row, which the cache then keeps.
"""

import torch
import triton
import triton.language as tl

from kernels.require import must, one_of

NUMBERS = {"w8a8": torch.int8, "fp8": torch.float8_e4m3fn}
TOP = {"w8a8": 127.0, "fp8": 448.0}
FLOATS = (torch.float16, torch.bfloat16, torch.float32)
MOST = 4096  # columns at a time
ROUNDING = tl.constexpr(12582912.0)  # 1.5 * 2^23 added and taken away removes all below one, halves to even


@triton.jit
def quantize_rows_kernel(
    x_ptr, number_ptr, scale_ptr, K, stride_x, TOP: tl.constexpr, WHOLE: tl.constexpr, BLOCK: tl.constexpr
):
    row = tl.program_id(0).to(tl.int64)
    at = tl.arange(0, BLOCK)
    largest = tl.zeros((BLOCK,), tl.float32)
    for first in range(0, K, BLOCK):
        x = tl.load(x_ptr + row * stride_x + first + at, mask=first + at < K, other=0.0).to(tl.float32)
        largest = tl.maximum(largest, tl.abs(x))
        largest = tl.where(x == x, largest, float("inf"))  # a NaN must not be lost in a maximum
    scale = tl.max(largest, 0) / TOP
    inverse = tl.where(scale > 0, 1.0 / scale, 0.0)
    tl.store(scale_ptr + row, scale)
    for first in range(0, K, BLOCK):
        x = tl.load(x_ptr + row * stride_x + first + at, mask=first + at < K, other=0.0).to(tl.float32)
        x = tl.minimum(tl.maximum(x * inverse, -TOP), TOP)
        if WHOLE:
            x = (x + ROUNDING) - ROUNDING
        tl.store(number_ptr + row * K + first + at, x.to(number_ptr.dtype.element_ty), mask=first + at < K)


def quantize_rows(x: torch.Tensor, form: str) -> tuple[torch.Tensor, torch.Tensor]:
    """Return (codes, fp32 scales). A row with NaN or infinity gets an infinite scale, to make its results infinite, too."""
    one_of(NUMBERS, form=form)
    must(x.ndim == 2, "x", "2-d: rows, K", f"{x.ndim}-d", "flatten its leading axes")
    must(x.dtype in FLOATS, "x", "fp16, bf16 or fp32", x.dtype, "convert it")
    x = x if x.stride(1) == 1 else x.contiguous()
    numbers = torch.empty(x.shape, dtype=NUMBERS[form], device=x.device)
    scales = torch.empty(x.shape[0], dtype=torch.float32, device=x.device)
    if x.numel():
        block = min(MOST, triton.next_power_of_2(x.shape[1]))
        quantize_rows_kernel[(x.shape[0],)](
            x, numbers, scales, x.shape[1], x.stride(0), TOP=TOP[form], WHOLE=form == "w8a8", BLOCK=block
        )
    return numbers, scales
