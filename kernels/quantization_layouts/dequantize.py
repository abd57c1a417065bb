"""Turn packed weights into 16-bit numbers for a library, in one pass that reads bits / 8 and writes 2 bytes a weight.

`dequantize(w)` writes (N, K) as a linear layer keeps its weight. With `transposed` it writes (K, N) in the same pass.
A library that needs (K, N) would otherwise run a second kernel and another two passes over the memory.
"""

import torch
import triton
import triton.language as tl

from kernels.quantization_layouts.arguments import check_layer
from kernels.quantization_layouts.packed import Packed
from kernels.quantization_layouts.unpack import book_of, codes_of, numbers, of_groups
from kernels.require import must

RUN, WARPS = 64, 8  # a program unpacks 128 rows of 64 columns


@triton.jit
def dequantize_kernel(
    low_ptr,
    high_ptr,
    scale_ptr,
    zero_ptr,
    book_ptr,
    filled,
    out_ptr,
    N,
    K,
    low_size,
    high_size,
    scale_size,
    out_size,
    stride_n,
    stride_k,
    KIND: tl.constexpr,
    BITS: tl.constexpr,
    GROUP: tl.constexpr,
    HAS_ZEROS: tl.constexpr,
    W: tl.constexpr,
    RUN: tl.constexpr,
):
    dtype: tl.constexpr = out_ptr.dtype.element_ty
    MIDDLE: tl.constexpr = 1032.0 if dtype == tl.float16 else 136.0
    ROWS: tl.constexpr = 16 * W
    expert = tl.program_id(2).to(tl.int64)
    brick = tl.program_id(1) * W
    column = tl.program_id(0) * RUN
    groups = K // GROUP
    book = book_of(book_ptr, BITS) if KIND == "book" else ((K, K), (K, K))
    low_ptr += expert * low_size
    high_ptr += expert * high_size
    code, top = codes_of(low_ptr, high_ptr, brick, column, K, 0, 1, 0, 1, W, RUN, BITS, True)
    w = numbers(code, top, book, filled, KIND, BITS, dtype)  # (1, W, 32, words, k / 8, row / 8, k % 2)
    if KIND == "fp4":  # as in direct.py
        w = w * tl.full([], 2.0**96, dtype)
    w = tl.reshape(w, (W, 8, 4, RUN // 16, 2, 2, 2))
    w = tl.reshape(tl.permute(w, 0, 5, 1, 3, 4, 2, 6), (ROWS, RUN)).to(tl.float32)
    offs_n = tl.arange(0, ROWS)
    at_scale = expert * scale_size + (brick + offs_n // 16) * groups * 16 + offs_n % 16
    first = column // GROUP
    if KIND == "int4":
        zero = tl.full((ROWS, 1), 8.0, tl.float32)
        if HAS_ZEROS:
            zero = of_groups(zero_ptr, at_scale, first, groups, GROUP, RUN).to(tl.float32)
        w = w - (zero + (MIDDLE - 8))
    scale = of_groups(scale_ptr, at_scale, first, groups, GROUP, RUN).to(tl.float32)
    w = w * scale
    if KIND == "fp4":
        w *= tl.load(book_ptr) * 2.0**-96
    w = w.to(dtype)
    n = brick * 16 + offs_n
    k = column + tl.arange(0, RUN)
    at = out_ptr + expert * out_size + n[:, None].to(tl.int64) * stride_n + k[None, :].to(tl.int64) * stride_k
    tl.store(at, w, mask=(n < N)[:, None] & (k < K)[None, :])


@triton.jit
def int8_kernel(words_ptr, scale_ptr, out_ptr, N, K, vectors, stride_n, stride_k, V: tl.constexpr):
    """A program unpacks 16 rows of V vectors of 32 columns, see packed.int8_words."""
    brick = tl.program_id(1).to(tl.int64)
    first = tl.program_id(0) * V
    place = tl.arange(0, V * 128)
    at = words_ptr + (brick * vectors + first) * 128 + place
    w = tl.reshape(tl.load(at, mask=first + place // 128 < vectors, other=0), (V, 8, 4, 2, 2))
    codes = tl.join(tl.join(w & 255, (w >> 16) & 255), tl.join((w >> 8) & 255, (w >> 24) & 255))
    # vector, row, pair, piece, row / 8, k % 2, k / 8
    rows = tl.reshape(tl.permute((codes ^ 128) - 128, 4, 1, 0, 3, 6, 2, 5), (16, V * 32)).to(tl.float32)
    n, k = brick * 16 + tl.arange(0, 16), first * 32 + tl.arange(0, V * 32)
    rows *= tl.load(scale_ptr + n, mask=n < N, other=0.0)[:, None]
    at_out = out_ptr + n[:, None] * stride_n + k[None, :].to(tl.int64) * stride_k
    tl.store(at_out, rows.to(out_ptr.dtype.element_ty), mask=(n < N)[:, None] & (k < K)[None, :])


def dequantize(w: Packed, out=None, transposed: bool = False) -> torch.Tensor:
    """Return (experts, N, K), or (experts, K, N) if transposed. A dense layer's result has no first axis."""
    sides = (w.k, w.n) if transposed else (w.n, w.k)
    shape = sides if w.experts == 1 else (w.experts, *sides)
    if out is None:
        out = torch.empty(shape, dtype=w.dtype, device=w.device)
    must(tuple(out.shape) == shape, "out", str(shape), tuple(out.shape), "leave it out to have it made")
    must(out.dtype == w.dtype, "out", f"{w.dtype} as the weight was packed for", out.dtype, "make it so")
    must(out.device == w.device, "out", f"on w's device {w.device}", out.device, "make it there")
    must(out.is_contiguous(), "out", "contiguous", f"strides {out.stride()}", "leave it out to have it made")
    strides = out.stride()[-2:]
    if w.kind == "int8":
        vectors = w.words[0].shape[2]
        strides = reversed(strides) if transposed else strides
        grid = (triton.cdiv(vectors, 8), triton.cdiv(w.n, 16))
        int8_kernel[grid](w.words[0], w.whole, out, w.n, w.k, vectors, *strides, V=8, num_warps=4)
        return out
    grid = (triton.cdiv(w.k, RUN), triton.cdiv(w.n, 16 * WARPS), w.experts)
    dequantize_kernel[grid](
        *w.operands,
        out,
        w.n,
        w.k,
        *w.expert_sizes,
        w.n * w.k,
        *(reversed(strides) if transposed else strides),
        **w.constants,
        W=WARPS,
        RUN=RUN,
        num_warps=WARPS,
    )
    return out


def library(x, w: Packed, out=None, workspace=None, transposed: bool = False) -> torch.Tensor:
    """Unpack all of W into `workspace`, then run the library's GEMM (for experts its batched one, with equally many rows each)."""
    x, out, each = check_layer(x, w, out, None, None)
    dense = dequantize(w, workspace, transposed)
    return by_library(x, dense if transposed else dense.mT, out, w.experts, each)


def by_library(x, right, out, experts: int, each: int) -> torch.Tensor:
    """x times (K, N) or (experts, K, N), by cuBLAS on a GPU."""
    if experts == 1:
        return torch.matmul(x, right, out=out)
    if out is None:
        return torch.bmm(x.view(experts, each, -1), right).view(x.shape[0], -1)
    torch.bmm(x.view(experts, each, -1), right, out=out.view(experts, each, -1))
    return out
