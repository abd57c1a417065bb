"""Multiply a few rows by a packed weight, each lane by itself. It loads its own operands, and no lane exchanges
anything.

The same stream as stream.py's, with the same cut among warps, but X and the scales are loaded like the words. Each
lane requests the numbers that meet its own weights (the L1 answers, since X is small and neighbours request the
same). So a step has no barrier and no shared memory, warps drift apart as the memory serves them, and the next step's
words are in flight while this one's are multiplied. One sum across warps ends it, with the same bits at every run.
"""

from dataclasses import dataclass

import torch
import triton
import triton.language as tl

from kernels.overlap import (
    can_overlap,
    capped,
    let_next_begin,
    overlapped,
    wait_for_last,
)
from kernels.quantization_layouts.arguments import check_layer
from kernels.quantization_layouts.packed import Packed
from kernels.quantization_layouts.unpack import book_of, codes_from, field_words, numbers, rows_of
from kernels.require import must


@dataclass(frozen=True)
class Direct:
    bricks: int = 1  # of 16 rows
    warps: int = 4
    run: int = 256  # columns that a warp takes at a time
    cols: int = 8  # rows of X at a time
    ahead: bool = True  # the next step's words are loaded before this one's are used
    whole: bool = False  # all that a program needs of the weight is requested before the first word is used
    once: bool = True  # words are marked as first to leave the caches, because they are read once
    early: bool = False  # see kernels/overlap.py
    registers: int = 0  # of a thread at most, so that more programs fit on an SM, or 0 for no limit


@triton.jit
def _pairs_of_x(
    x_ptr, k, K, rows, stride_xm, W: tl.constexpr, RUN: tl.constexpr, TILES: tl.constexpr, EVEN: tl.constexpr
):
    """Load (TILES RUN / 8 W 32, 2). Lane 4 n + p has columns 2 p and 2 p + 1 of every eight of X's row n, or of its
    last.

    One axis for all but the pair, so that lanes can only be dealt out in this order. What is the same for a whole warp
    is added to the pointer last, and becomes a part of the load.
    """
    place = tl.arange(0, TILES * (RUN // 8) * W * 32)
    row = tl.minimum(place // (4 * W * RUN) * 8 + place // 4 % 8, rows - 1)
    eighth = place // (32 * W) % (RUN // 8) * 8
    column = place // 32 % W * RUN + place % 4 * 2
    at = (x_ptr + k + row * stride_xm + column)[:, None] + eighth[:, None] + tl.arange(0, 2)[None, :]
    if EVEN:
        return tl.load(at)
    return tl.load(at, mask=(k + column + eighth < K)[:, None] & (tl.arange(0, 2) >= 0)[None, :], other=0.0)


@triton.jit
def _groups(at_ptr, at, k, K, GROUP: tl.constexpr, B: tl.constexpr, W: tl.constexpr, RUN: tl.constexpr):
    """Load (PARTS, B, 2, W, 32) scales or zero points. Lane 4 r + p has those of rows r and r + 8 of each brick."""
    PARTS: tl.constexpr = RUN // GROUP
    place = tl.arange(0, PARTS * B * 2 * W * 32)
    half = place // (32 * W) % 2 * 8
    brick = place // (64 * W) % B
    group = k // GROUP + place // 32 % W * PARTS + place // (64 * W * B)
    groups = K // GROUP
    offs = at + (brick * groups + group) * 16 + half + place % 32 // 4
    found = tl.load(at_ptr + offs, mask=group < groups, other=0)
    return tl.reshape(found, (PARTS, B, 2, W, 8, 4))


@triton.jit
def _of_weight(
    ptrs,
    at,
    brick,
    k,
    K,
    BITS: tl.constexpr,
    GROUP: tl.constexpr,
    HAS_ZEROS: tl.constexpr,
    B: tl.constexpr,
    W: tl.constexpr,
    RUN: tl.constexpr,
    POLICY: tl.constexpr,
):
    """Load a step's part of the weight, as stored in memory, with words of both fields, scales and zero points."""
    low_ptr, high_ptr, scale_ptr, zero_ptr = ptrs
    low, high = field_words(low_ptr, high_ptr, brick, k, K, 1, 0, RUN, B, W, RUN, BITS, False, POLICY)
    scale = _groups(scale_ptr, at, k, K, GROUP, B, W, RUN)
    zero = scale
    if HAS_ZEROS:
        zero = _groups(zero_ptr, at, k, K, GROUP, B, W, RUN)
    return low, high, scale, zero


@triton.jit
def _products(
    fetched,
    x,
    book,
    filled,
    KIND: tl.constexpr,
    BITS: tl.constexpr,
    GROUP: tl.constexpr,
    HAS_ZEROS: tl.constexpr,
    B: tl.constexpr,
    W: tl.constexpr,
    RUN: tl.constexpr,
    COLS: tl.constexpr,
):
    """Return (W, ROWS, COLS) of a step, unpacked, times X, and scaled in fp32 once a group."""
    low, high, scale, zero = fetched
    dtype: tl.constexpr = x.dtype
    MIDDLE: tl.constexpr = 1032.0 if dtype == tl.float16 else 136.0
    PARTS: tl.constexpr = RUN // GROUP
    G: tl.constexpr = PARTS * W
    ROWS: tl.constexpr = 16 * B
    TILES: tl.constexpr = COLS // 8
    code, top = codes_from(low, high, BITS)
    w = numbers(code, top, book, filled, KIND, BITS, dtype)  # (B, W, 32, words, k / 8, row / 8, k % 2)
    w = tl.reshape(w, (B, W, 8, 4, PARTS, GROUP // 16, 2, 2, 2))
    if KIND == "int4":
        if HAS_ZEROS:
            zero = tl.permute((zero.to(tl.float32) + (MIDDLE - 8)).to(dtype), 1, 3, 4, 5, 0, 2)
            w = w - tl.reshape(zero, (B, W, 8, 4, PARTS, 1, 1, 2, 1))
        else:
            w = w - tl.full([], MIDDLE, dtype)
    elif KIND == "fp4":  # most of the missing 2^126 (the scales have all, and the result drops the excess)
        w = w * tl.full([], 2.0**96, dtype)
    # k in the order in which a lane holds its operand, 0 1 8 9, 2 3 10 11, ..
    w = tl.reshape(tl.permute(w, 4, 1, 0, 7, 2, 5, 3, 6, 8), (G, ROWS, GROUP))
    x = tl.reshape(x, (TILES, PARTS, GROUP // 16, 2, W, 8, 4, 2))
    x = tl.reshape(tl.permute(x, 1, 4, 2, 6, 3, 7, 0, 5), (G, GROUP, COLS))
    scale = tl.reshape(tl.permute(scale.to(tl.float32), 0, 3, 1, 2, 4, 5), (G, ROWS, 1, 4, 1))
    part = tl.reshape(tl.dot(w, x), (G, ROWS, TILES, 4, 2)) * scale
    return tl.sum(tl.reshape(part, (PARTS, W, ROWS, COLS)), 0)


@triton.jit(do_not_specialize=["M"])  # one compiled kernel for every M
def direct_kernel(
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
    B: tl.constexpr,
    W: tl.constexpr,
    RUN: tl.constexpr,
    COLS: tl.constexpr,
    AHEAD: tl.constexpr,
    WHOLE: tl.constexpr,
    POLICY: tl.constexpr,
    EARLY: tl.constexpr,
):
    LATE: tl.constexpr = EARLY and not RAGGED
    if EARLY:
        let_next_begin()
        if RAGGED:
            wait_for_last()
    expert = tl.program_id(2).to(tl.int64)
    first, last = rows_of(expert, offsets_ptr, M, RAGGED)
    first += tl.program_id(1) * COLS
    if first >= last:
        return
    ROWS: tl.constexpr = 16 * B
    STEP: tl.constexpr = RUN * W
    TILES: tl.constexpr = COLS // 8
    brick = tl.program_id(0) * B
    book = book_of(book_ptr, BITS) if KIND == "book" else ((K, K), (K, K))
    low_ptr += expert * low_size
    high_ptr += expert * high_size
    ptrs = low_ptr, high_ptr, scale_ptr, zero_ptr
    x_ptr += first * stride_xm
    at = expert * scale_size + brick * (K // GROUP) * 16
    rows = (last - first).to(tl.int32)
    acc = tl.zeros((W, ROWS, COLS), tl.float32)
    if WHOLE:
        fetched = ()
        for i in tl.static_range(WHOLE):
            fetched += (_of_weight(ptrs, at, brick, i * STEP, K, BITS, GROUP, HAS_ZEROS, B, W, RUN, POLICY),)
        if LATE:
            wait_for_last()
        for i in tl.static_range(WHOLE):
            x = _pairs_of_x(x_ptr, i * STEP, K, rows, stride_xm, W, RUN, TILES, EVEN)
            acc += _products(fetched[i], x, book, filled, KIND, BITS, GROUP, HAS_ZEROS, B, W, RUN, COLS)
    else:
        if AHEAD:
            next_low, next_high = field_words(
                low_ptr, high_ptr, brick, 0, K, 1, 0, RUN, B, W, RUN, BITS, False, POLICY
            )
        for k in range(0, K, STEP):
            if AHEAD:
                low, high = next_low, next_high
                next_low, next_high = field_words(
                    low_ptr, high_ptr, brick, k + STEP, K, 1, 0, RUN, B, W, RUN, BITS, False, POLICY
                )
                scale = _groups(scale_ptr, at, k, K, GROUP, B, W, RUN)
                zero = scale
                if HAS_ZEROS:
                    zero = _groups(zero_ptr, at, k, K, GROUP, B, W, RUN)
                step = (low, high, scale, zero)
            else:
                step = _of_weight(ptrs, at, brick, k, K, BITS, GROUP, HAS_ZEROS, B, W, RUN, POLICY)
            if LATE:
                wait_for_last()
            x = _pairs_of_x(x_ptr, k, K, rows, stride_xm, W, RUN, TILES, EVEN)
            acc += _products(step, x, book, filled, KIND, BITS, GROUP, HAS_ZEROS, B, W, RUN, COLS)
    offs_n = brick * 16 + tl.arange(0, ROWS)
    offs_m = tl.arange(0, COLS)
    at_y = y_ptr + (first + offs_m)[None, :] * stride_ym + offs_n[:, None]
    y = tl.sum(acc, 0)
    if KIND == "fp4":
        y *= tl.load(book_ptr) * 2.0**-96
    y = y.to(y_ptr.dtype.element_ty)
    tl.store(at_y, y, mask=(offs_n < N)[:, None] & (offs_m < rows)[None, :])


def direct(x, w: Packed, out=None, offsets=None, most=None, config: Direct | None = None) -> torch.Tensor:
    """Compute out (rows, N) = x (rows, K) times the packed weight, with the arguments of stream()."""
    x, out, each = check_layer(x, w, out, offsets, most)
    if not out.numel():
        return out
    must(w.kind != "int8", "w", "int4, FP4 or a codebook", "int8", "multiply it with dispatch.linear()")
    config = config or pick(w, each)
    run, warps = w.cut(config.run, config.warps)
    grid = (triton.cdiv(w.n, 16 * config.bricks), triton.cdiv(each, config.cols), w.experts)
    early = config.early and can_overlap(x.device)
    direct_kernel[grid](
        *w.operands,
        x,
        out,
        x if offsets is None else offsets,
        each,
        w.n,
        w.k,
        *w.expert_sizes,
        x.stride(0),
        out.stride(0),
        **w.constants,
        RAGGED=offsets is not None,
        EVEN=w.k % (run * warps) == 0,
        B=config.bricks,
        W=warps,
        RUN=run,
        COLS=config.cols,
        AHEAD=config.ahead,
        WHOLE=triton.cdiv(w.k, run * warps) if config.whole else 0,
        POLICY="evict_first" if config.once else "",
        EARLY=early,
        num_warps=warps,
        num_stages=1,
        **overlapped(early),
        **capped(config.registers),
    )
    return out


def pick(w: Packed, rows: int) -> Direct:
    """Choose for a GPU without timed kernels, or for FP4 of a small weight, H200, 2026-11-24."""
    if rows > 8:
        return Direct(cols=16)
    return Direct(1, 8, 256) if w.kind == "fp4" else Direct()
