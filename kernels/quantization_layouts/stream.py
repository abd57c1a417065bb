"""Multiply a few rows with a packed weight, which streams through once. The tensor cores hide the unpacking.

A program owns 16 to 64 rows of W and all of K. Its warps cut K among them (a batched product whose batch axis is the
scale group), so each reads a stretch of memory of its own, multiplies with m16n8k16 and scales its sums once a group,
in fp32. One sum across warps comes last. No second kernel, no atomics, the same bits at every run. `tensor=False` is
the same stream on the CUDA cores: one multiply-add for each weight and row of X. Experts are a third axis of the
grid. Rows of X are in expert order, equally many for each, or as `offsets` says.
"""

from dataclasses import dataclass, replace

import torch
import triton
import triton.language as tl

from kernels.machines import machine
from kernels.overlap import (
    can_overlap,
    capped,
    let_next_begin,
    overlapped,
    wait_for_last,
)
from kernels.quantization_layouts.arguments import check_kind, check_layer
from kernels.quantization_layouts.packed import Packed
from kernels.quantization_layouts.unpack import book_of, codes_from, field_words, numbers


@dataclass(frozen=True)
class Stream:
    bricks: int = 1  # of 16 rows
    warps: int = 4
    run: int = 512  # columns that a warp takes at a time
    cols: int = 8  # rows of X at a time
    tensor: bool = True
    stages: int = 1
    whole: bool = False  # all words of a program are requested before the first is used
    early: bool = False  # see kernels/overlap.py
    chained: bool = (
        False  # early, after a launch that waited itself: `offsets` are at rest, and words may be fetched
    )
    registers: int = 0  # of a thread at most, so that more programs fit on an SM, or 0 for no limit


@triton.jit
def _fetch(
    ptrs,
    k,
    K,
    at_scale,
    group,
    brick,
    BITS: tl.constexpr,
    GROUP: tl.constexpr,
    HAS_ZEROS: tl.constexpr,
    EVEN: tl.constexpr,
    B: tl.constexpr,
    W: tl.constexpr,
    RUN: tl.constexpr,
):
    """Load a step's part of the weight: words of both fields as stored in memory, scales and zero points (G, ROWS)."""
    low_ptr, high_ptr, scale_ptr, zero_ptr = ptrs
    at = k // GROUP + group
    mask = (at < K // GROUP)[:, None]
    offs = at_scale + at[:, None] * 16
    scale = tl.load(scale_ptr + offs, mask=mask, other=0.0)
    zero = scale
    if HAS_ZEROS:
        zero = tl.load(zero_ptr + offs, mask=mask, other=0)
    low, high = field_words(low_ptr, high_ptr, brick, k, K, 1, 0, RUN, B, W, RUN, BITS, EVEN, "")
    return low, high, scale, zero


@triton.jit
def _multiply(
    acc,
    fetched,
    book,
    filled,
    x_ptr,
    stride_xm,
    k,
    K,
    group,
    mask_m,
    KIND: tl.constexpr,
    BITS: tl.constexpr,
    GROUP: tl.constexpr,
    HAS_ZEROS: tl.constexpr,
    B: tl.constexpr,
    W: tl.constexpr,
    RUN: tl.constexpr,
    COLS: tl.constexpr,
    TENSOR: tl.constexpr,
):
    """Return sums with a step's products, unpacked, times X, and scaled in fp32 once a group."""
    low, high, scale, zero = fetched
    dtype: tl.constexpr = x_ptr.dtype.element_ty
    MIDDLE: tl.constexpr = 1032.0 if dtype == tl.float16 else 136.0
    ROWS: tl.constexpr = 16 * B
    PARTS: tl.constexpr = RUN // GROUP
    G: tl.constexpr = W * PARTS
    code, top = codes_from(low, high, BITS)
    w = numbers(code, top, book, filled, KIND, BITS, dtype)  # (B, W, 32, words, k / 8, row / 8, k % 2)
    w = tl.reshape(w, (B, W, 8, 4, PARTS, GROUP // 32, 2, 2, 2, 2))
    if TENSOR:  # k in the order in which a lane holds its operand, 0 1 8 9, 2 3 10 11, ..
        w = tl.permute(w, 4, 1, 0, 8, 2, 5, 6, 3, 7, 9)
    else:
        w = tl.permute(w, 4, 1, 0, 8, 2, 5, 6, 7, 3, 9)
    w = tl.reshape(w, (G, ROWS, GROUP))
    if KIND == "int4":
        if HAS_ZEROS:
            w = w - (zero.to(tl.float32) + (MIDDLE - 8)).to(dtype)[:, :, None]
        else:
            w = w - tl.full([], MIDDLE, dtype)
    scale = scale.to(tl.float32)
    at = k // GROUP + group
    mask_g = at < K // GROUP
    offs_m = tl.arange(0, COLS)
    offs_k = tl.arange(0, GROUP)
    if TENSOR:
        offs_x = offs_m[None, :, None] * stride_xm + (at * GROUP)[:, None, None] + offs_k[None, None, :]
        x = tl.load(x_ptr + offs_x, mask=mask_m[None, :, None] & mask_g[:, None, None], other=0.0)
        x = tl.reshape(x, (G, COLS, GROUP // 32, 2, 2, 4, 2))
        x = tl.reshape(tl.permute(x, 0, 2, 3, 5, 4, 6, 1), (G, GROUP, COLS))
        part = tl.reshape(tl.dot(w, x) * scale[:, :, None], (PARTS, W, ROWS, COLS))
    else:
        offs_x = (at * GROUP)[:, None] + offs_k[None, :]
        x = tl.load(x_ptr + offs_x, mask=mask_g[:, None], other=0.0)  # (G, GROUP)
        part = tl.sum(w.to(tl.float32) * x.to(tl.float32)[:, None, :], 2) * scale
        part = tl.reshape(part, (PARTS, W, ROWS))
    return acc + tl.sum(part, 0)


@triton.jit
def _piece_of(offsets_ptr, piece, EXPERTS: tl.constexpr, COLS: tl.constexpr, ONE: tl.constexpr):
    """Return (first row, its expert's end, the expert) of a piece, COLS rows of one expert. An expert without rows has
    none, so that no program looks at it for nothing. A piece past the last has no row."""
    offs_e = tl.arange(0, EXPERTS[0])
    mask = offs_e < EXPERTS[1]
    end = tl.load(offsets_ptr + 1 + offs_e, mask=mask, other=0, cache_modifier=".cg")
    if ONE:  # no expert has more, so piece and row are the same
        expert = tl.sum((mask & (end <= piece)).to(tl.int32), 0).to(tl.int64)
        first = piece.to(tl.int64)
        return first, tl.where(expert < EXPERTS[1], first + 1, first), expert
    begin = tl.load(offsets_ptr + offs_e, mask=mask, other=0, cache_modifier=".cg")
    pieces = (end - begin + COLS - 1) // COLS
    until = tl.cumsum(pieces, 0)
    mine = mask & (until > piece) & (until - pieces <= piece)
    first = tl.sum(tl.where(mine, begin + (piece - until + pieces) * COLS, 0), 0)
    last = tl.sum(tl.where(mine, end, 0), 0)
    expert = tl.sum(tl.where(mine, offs_e, 0), 0)
    return first.to(tl.int64), last.to(tl.int64), expert.to(tl.int64)


@triton.jit(do_not_specialize=["M"])  # one compiled kernel for every M
def stream_kernel(
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
    TENSOR: tl.constexpr,
    STAGES: tl.constexpr,
    WHOLE: tl.constexpr,
    EARLY: tl.constexpr,
    CHAINED: tl.constexpr,
    GATED: tl.constexpr,
    EXPERTS: tl.constexpr,
    ONE: tl.constexpr,
):
    # a pipelined loop fetches X before it begins, so what must be waited for is waited for there
    LATE: tl.constexpr = EARLY and (CHAINED or not RAGGED) and STAGES == 1
    if EARLY:
        if not LATE:
            wait_for_last()
        let_next_begin()  # of ragged rows after the wait, for then offsets are at rest for the next launch
    if RAGGED:
        first, last, expert = _piece_of(offsets_ptr, tl.program_id(2), EXPERTS, COLS, ONE)
    else:
        expert = tl.program_id(2).to(tl.int64)
        first, last = expert * M + tl.program_id(1) * COLS, expert * M + M
    if first >= last:
        return
    ROWS: tl.constexpr = 16 * B
    PARTS: tl.constexpr = RUN // GROUP
    brick = tl.program_id(0) * B
    offs_n = tl.arange(0, ROWS)
    offs_m = tl.arange(0, COLS)
    batch = tl.arange(0, W * PARTS)
    group = (batch % W) * PARTS + batch // W  # of a step, where a warp's groups follow each other along K
    mask_m = first + offs_m < last
    book = book_of(book_ptr, BITS) if KIND == "book" else ((K, K), (K, K))
    ptrs = low_ptr + expert * low_size, high_ptr + expert * high_size, scale_ptr, zero_ptr
    x_ptr += first * stride_xm
    at_scale = expert * scale_size + ((brick + offs_n // 16) * (K // GROUP) * 16 + offs_n % 16)[None, :]
    if TENSOR:
        acc = tl.zeros((W, ROWS, COLS), tl.float32)
    else:
        acc = tl.zeros((W, ROWS), tl.float32)
    if WHOLE:
        fetched = ()
        for i in tl.static_range(WHOLE):
            k = i * RUN * W
            fetched += (_fetch(ptrs, k, K, at_scale, group, brick, BITS, GROUP, HAS_ZEROS, EVEN, B, W, RUN),)
        if LATE:
            wait_for_last()
        for i in tl.static_range(WHOLE):
            k = i * RUN * W
            acc = _multiply(
                acc, fetched[i], book, filled, x_ptr, stride_xm, k, K, group, mask_m,
                KIND, BITS, GROUP, HAS_ZEROS, B, W, RUN, COLS, TENSOR,
            )  # fmt: skip
    else:
        for k in tl.range(0, K, RUN * W, num_stages=STAGES):
            one = _fetch(ptrs, k, K, at_scale, group, brick, BITS, GROUP, HAS_ZEROS, EVEN, B, W, RUN)
            if LATE:
                wait_for_last()
            acc = _multiply(
                acc, one, book, filled, x_ptr, stride_xm, k, K, group, mask_m,
                KIND, BITS, GROUP, HAS_ZEROS, B, W, RUN, COLS, TENSOR,
            )  # fmt: skip
    offs_n += brick * 16
    mask_n = offs_n < N
    y_ptr += first * stride_ym
    if GATED:  # bricks of gate's and up's rows alternate, so half the rows come out
        both = tl.permute(tl.reshape(tl.sum(acc, 0), (B // 2, 2, 16, COLS)), 0, 2, 3, 1)
        gate, up = tl.split(both)
        h = tl.reshape(gate / (1.0 + tl.exp(-gate)) * up, (ROWS // 2, COLS)).to(y_ptr.dtype.element_ty)
        offs_n = brick * 8 + tl.arange(0, ROWS // 2)
        at_h = y_ptr + offs_m[None, :] * stride_ym + offs_n[:, None]
        tl.store(at_h, h, mask=(offs_n < N // 2)[:, None] & mask_m[None, :])
    elif TENSOR:
        y = tl.sum(acc, 0).to(y_ptr.dtype.element_ty)
        at_y = y_ptr + offs_m[None, :] * stride_ym + offs_n[:, None]
        tl.store(at_y, y, mask=mask_n[:, None] & mask_m[None, :])
    else:
        tl.store(y_ptr + offs_n, tl.sum(acc, 0).to(y_ptr.dtype.element_ty), mask=mask_n)


def stream(
    x, w: Packed, out=None, offsets=None, most=None, config: Stream | None = None, gated: bool = False
) -> torch.Tensor:
    """Compute out (rows, N) = x (rows, K) times the packed weight, rows of several experts in the order of experts.

    `offsets` (experts + 1) in int32 says where each expert's rows begin. Without it all experts have equally many.
    `most` bounds the rows of an expert with offsets and sizes the grid. By default it is all rows. `gated` takes a
    weight of gated_rows() and gives SiLU(gate) * up, (rows, N / 2).
    """
    x, out, each = check_layer(x, w, out, offsets, most, gated)
    check_kind(w)
    if not out.numel():
        return out
    config = fitting(config or pick(w, each), w)
    if gated:
        config = replace(config, bricks=max(2, config.bricks), tensor=True)
    cols = config.cols if config.tensor else 1
    if offsets is None:
        groups, pieces = w.experts, triton.cdiv(each, cols)
    else:  # no more pieces than this, whatever the routing
        groups, pieces = min(len(x), min(w.experts, len(x)) + len(x) // cols), 1
        groups = min(groups, w.experts * triton.cdiv(each, cols))
    grid = (triton.cdiv(w.n, 16 * config.bricks), pieces, groups)
    even = w.k % (config.run * config.warps) == 0
    early = config.early and can_overlap(x.device)
    stream_kernel[grid](
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
        EVEN=even,
        B=config.bricks,
        W=config.warps,
        RUN=config.run,
        COLS=cols,
        TENSOR=config.tensor,
        STAGES=config.stages,
        WHOLE=triton.cdiv(w.k, config.run * config.warps) if config.whole else 0,
        EARLY=early,
        CHAINED=config.chained and not gated,
        GATED=gated,
        ONE=each == 1,
        EXPERTS=(triton.next_power_of_2(w.experts), w.experts),
        num_warps=config.warps,
        num_stages=config.stages,
        **overlapped(early),
        **capped(config.registers),
    )
    return out


def fitting(config: Stream, w: Packed) -> Stream:
    """The configuration as K cuts it, with no more stages than shared memory holds."""
    # two longer tables of five bits would not fit into the registers
    run, warps = w.cut(min(config.run, 256) if w.bits == 5 else config.run, config.warps)
    fits = replace(config, run=run, warps=warps)
    while fits.stages > 1 and shared_bytes(fits, w) > shared_limit(w.device):
        fits = replace(fits, stages=fits.stages - 1)
    return fits


def shared_bytes(config: Stream, w: Packed) -> int:
    """Return the shared bytes at most: words of 16-row bricks and rows of X for each stage ahead, and sums across
    warps, in and out."""
    columns = config.run * config.warps
    rows, cols = 16 * config.bricks, config.cols if config.tensor else 1
    step = rows * columns * w.bits // 8 + cols * columns * 2
    return (config.stages - 1) * step + 2 * 4 * rows * cols * config.warps


def shared_limit(device: torch.device) -> int:
    """Return the bytes that one program may have, by this GPU, or a Hopper's where kernels are only compiled."""
    if device.type != "cuda":
        return machine("H200").sram_bytes
    return torch.cuda.get_device_properties(device).shared_memory_per_block_optin


def pick(w: Packed, rows: int) -> Stream:
    """Choose the fastest one for shapes like this one on an H200. Calibration measures the alternatives."""
    if w.k >= 8192:
        return Stream(2, 4, 256, 16) if rows > 8 else Stream(2, 4, 256, stages=4)
    if w.kind == "book" and w.k >= 4096:  # its look-ups want registers, so runs are shorter and fetched ahead
        return Stream(1, 4, 256, stages=3)
    return Stream(1, 4, 512)


def pick_experts(w: Packed, rows: int, gated: bool) -> Stream:
    """Choose the same for experts that differ in rows, `rows` at most. H200, 2026-11-24, in a decode step.

    Down's launch follows gate and up's, which has waited for `offsets`, so it need not.
    """
    if rows > 1:
        found = Stream(2, 1, 256, stages=2 if gated else 1)
    elif gated:
        found = Stream(2, 4, 256, whole=w.k <= 2048)
    else:
        found = Stream(1, 2, 128, whole=w.k <= 1024, registers=96)
    return replace(found, early=True, chained=not gated)
