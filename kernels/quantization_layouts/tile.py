"""Multiply many rows by a packed weight, in a tiled GEMM whose weights are unpacked in registers, straight into the
tensor core.

W is the left operand and stays in registers: each warp loads 16-byte vectors of its own rows, turns them into 16-bit
numbers, scales them, and multiplies. X comes through shared memory. So an unpacked weight is never written anywhere.
Unpacking costs the same for 8 rows of X as for 256, which is why a wide tile pays it less often. Beyond some M the
library on weights unpacked once is faster, and dispatch.py knows this M. Experts are a further axis of the grid.
"""

from dataclasses import dataclass

import torch
import triton
import triton.language as tl

from kernels.quantization_layouts.arguments import check_kind, check_layer
from kernels.quantization_layouts.packed import Packed
from kernels.quantization_layouts.unpack import book_of, codes_of, numbers, of_groups, rows_of

RUN = 64  # columns of W in a step


@dataclass(frozen=True)
class Tile:
    warps: int = 4  # each owns 16 rows of W
    cols: int = 64  # rows of X
    stages: int = 4


# without 256 rows of X, because 8 warps would spill 248 bytes a thread
NARROW, MIDDLE, WIDE = Tile(4, 32), Tile(4, 64), Tile(8, 128)


@triton.jit(do_not_specialize=["M", "tiles_m"])  # one compiled kernel for every M
def tile_kernel(
    low_ptr,
    high_ptr,
    scale_ptr,
    zero_ptr,
    book_ptr,
    filled,
    x_ptr,
    y_ptr,
    offsets_ptr,
    M,
    N,
    K,
    tiles_m,
    low_size,
    high_size,
    scale_size,
    stride_xm,
    stride_ym,
    KIND: tl.constexpr,
    BITS: tl.constexpr,
    GROUP: tl.constexpr,
    HAS_ZEROS: tl.constexpr,
    RAGGED: tl.constexpr,
    EVEN: tl.constexpr,
    W: tl.constexpr,
    RUN: tl.constexpr,
    COLS: tl.constexpr,
    STAGES: tl.constexpr,
):
    expert = tl.program_id(1).to(tl.int64)
    first, last = rows_of(expert, offsets_ptr, M, RAGGED)
    first += tl.program_id(0) % tiles_m * COLS
    if first >= last:
        return
    dtype: tl.constexpr = x_ptr.dtype.element_ty
    MIDDLE: tl.constexpr = 1032.0 if dtype == tl.float16 else 136.0
    ROWS: tl.constexpr = 16 * W
    brick = tl.program_id(0) // tiles_m * W
    offs_n = tl.arange(0, ROWS)
    offs_m = tl.arange(0, COLS)
    offs_k = tl.arange(0, RUN)
    mask_m = first + offs_m < last
    groups = K // GROUP
    book = book_of(book_ptr, BITS) if KIND == "book" else ((K, K), (K, K))
    low_ptr += expert * low_size
    high_ptr += expert * high_size
    at_scale = expert * scale_size + (brick + offs_n // 16) * groups * 16 + offs_n % 16
    at_x = x_ptr + (first + offs_m)[:, None] * stride_xm + offs_k[None, :]
    acc = tl.zeros((ROWS, COLS), tl.float32)
    for k in tl.range(0, K, RUN, num_stages=STAGES):
        if EVEN:
            x = tl.load(at_x + k, mask=mask_m[:, None], other=0.0)  # (COLS, RUN)
        else:
            x = tl.load(at_x + k, mask=mask_m[:, None] & (k + offs_k < K)[None, :], other=0.0)
        code, top = codes_of(low_ptr, high_ptr, brick, k, K, 0, 1, 0, 1, W, RUN, BITS, True)
        w = numbers(code, top, book, filled, KIND, BITS, dtype)  # (1, W, 32, words, k / 8, row / 8, k % 2)
        w = tl.reshape(w, (W, 8, 4, RUN // 16, 2, 2, 2))
        w = tl.reshape(tl.permute(w, 0, 5, 1, 3, 4, 2, 6), (ROWS, RUN))
        if KIND == "int4":
            if HAS_ZEROS:
                zero = of_groups(zero_ptr, at_scale, k // GROUP, groups, GROUP, RUN).to(tl.float32)
                w = w - (zero + (MIDDLE - 8)).to(dtype)
            else:
                w = w - tl.full([], MIDDLE, dtype)
        scale = of_groups(scale_ptr, at_scale, k // GROUP, groups, GROUP, RUN)
        # the sum waits for the products: Triton (3.6, 3.7) would let three run on while the next step unpacks into the
        # registers of their left operand, which gave errors of 0.004 to 1000 at 128 and 256 columns on an H200
        acc = tl.dot(w * scale, x.T, acc) + 0.0
    offs_n += brick * 16
    at_y = y_ptr + (first + offs_m)[:, None] * stride_ym + offs_n[None, :]
    tl.store(at_y, acc.T.to(y_ptr.dtype.element_ty), mask=mask_m[:, None] & (offs_n < N)[None, :])


def tile(x, w: Packed, out=None, offsets=None, most=None, config: Tile | None = None) -> torch.Tensor:
    """Compute out (rows, N) = x (rows, K) times the packed weight, with the arguments of stream()."""
    x, out, each = check_layer(x, w, out, offsets, most)
    check_kind(w)
    if not out.numel():
        return out
    config = config or pick(each)
    tiles_m = triton.cdiv(each, config.cols)
    grid = (tiles_m * triton.cdiv(w.n, 16 * config.warps), w.experts)
    tile_kernel[grid](
        *w.operands,
        x,
        out,
        x if offsets is None else offsets,
        each,
        w.n,
        w.k,
        tiles_m,
        *w.expert_sizes,
        x.stride(0),
        out.stride(0),
        **w.constants,
        RAGGED=offsets is not None,
        EVEN=w.k % RUN == 0,
        W=config.warps,
        RUN=RUN,
        COLS=config.cols,
        STAGES=config.stages,
        num_warps=config.warps,
        num_stages=config.stages,
    )
    return out


def pick(rows: int) -> Tile:
    """Choose by the rows of X alone. Calibration measures the alternatives."""
    return NARROW if rows <= 32 else MIDDLE if rows <= 64 else WIDE
