"""Process one step in a warpgroup of the pipeline, which waits for its rows, unpacks, multiplies, releases the stage.

With one piece of 64 rows it waits for its product, and three other warpgroups fill the time. Up to 64 rows of X nothing
was faster. Where sums need the registers of two warpgroups, each has several pieces, and a piece is unpacked while the
product of the piece before runs. The last piece's product runs on into the next step.
An operand in registers must stay there until a wait for the product, so the waits name the operand.
"""

from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.hopper import mbarrier, warpgroup_mma, warpgroup_mma_wait

from kernels.quantization_layouts.hopper_unpack import (
    BRICKS,
    STEP,
    operand,
    rows_layout,
    scaled,
    unpack,
    unpack_int8,
    words_layout,
)


@gluon.jit
def zero_sums(COLS: gl.constexpr, PIECES: gl.constexpr):
    ACC: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [4, 1], [16, COLS, 16])
    sums = ()
    for _i in gl.static_range(PIECES):
        sums += (gl.zeros([16 * BRICKS, COLS], gl.float32, ACC),)
    return sums


@gluon.jit
def _full(rings, count):
    """The stage of a step, once it has come."""
    words, scales, zeros, xs, full, empty = rings
    stage = count % words.shape[0]
    mbarrier.wait(full.index(stage), count // words.shape[0] & 1)
    return stage


@gluon.jit
def _weights(rings, stage, filled, book, PIECE: gl.constexpr, LATE: gl.constexpr, HAS_ZEROS: gl.constexpr):
    """64 rows of a step, unpacked, and their scales."""
    words, scales, zeros, xs, full, empty = rings
    FIRST: gl.constexpr = PIECE * BRICKS
    INT8: gl.constexpr = xs.shape[2] < STEP  # which has no groups
    word = words.index(stage).slice(FIRST, BRICKS).load(words_layout())
    if INT8:
        pairs, scale = unpack_int8(word, filled, xs.dtype), filled
    else:
        BY_ROW: gl.constexpr = rows_layout(scales.shape[2] // 16)
        scale = scales.index(stage).slice(FIRST, BRICKS).load(BY_ROW)
        zero = scale
        if HAS_ZEROS:
            zero = zeros.index(stage).slice(FIRST, BRICKS).load(BY_ROW)
        pairs = unpack(word, scale, zero, filled, book, xs.dtype, LATE, HAS_ZEROS)
    return pairs, scale


@gluon.jit
def one_piece(
    rings, acc, nothing, count, filled, book, WHICH: gl.constexpr, LATE: gl.constexpr, HAS_ZEROS: gl.constexpr
):
    """Take a step of 64 rows. Their product is waited for, and with LATE scaled on arrival."""
    words, scales, zeros, xs, full, empty = rings
    ACC: gl.constexpr = acc.type.layout
    stage = _full(rings, count)
    x = xs.index(stage).permute((1, 0))
    pairs, scale = _weights(rings, stage, filled, book, WHICH, LATE, HAS_ZEROS)
    w = operand(pairs[0], pairs[1], pairs[2], pairs[3], xs.dtype, ACC)
    if LATE:
        part = warpgroup_mma(w, x, nothing, use_acc=False, is_async=True)
        part, w = warpgroup_mma_wait(0, deps=(part, w))
        acc = scaled(acc, part, scale, ACC)
    else:
        acc = warpgroup_mma(w, x, acc, is_async=True)
        acc, w = warpgroup_mma_wait(0, deps=(acc, w))
    mbarrier.arrive(empty.index(stage), count=1)
    return acc


@gluon.jit
def pieces(
    rings,
    state,
    count,
    filled,
    book,
    FIRST: gl.constexpr,
    WHICH: gl.constexpr,
    PIECES: gl.constexpr,
    HAS_ZEROS: gl.constexpr,
):
    """Take a step of several times 64 rows. The state is their sums, the last still running, and that one's operand."""
    words, scales, zeros, xs, full, empty = rings
    before, held = state
    LAST: gl.constexpr = PIECES - 1
    ACC: gl.constexpr = before[0].type.layout
    stage = _full(rings, count)
    x = xs.index(stage).permute((1, 0))
    sums = ()
    pairs, _ = _weights(rings, stage, filled, book, WHICH * PIECES, False, HAS_ZEROS)
    w = operand(pairs[0], pairs[1], pairs[2], pairs[3], xs.dtype, ACC)
    running = warpgroup_mma(w, x, before[0], is_async=True)
    last = before[LAST]
    if not FIRST:
        last, _, _, _, _ = warpgroup_mma_wait(1, deps=(last, held[0], held[1], held[2], held[3]))
        mbarrier.arrive(empty.index((count - 1) % words.shape[0]), count=1)
    for i in gl.static_range(1, PIECES):
        after, _ = _weights(rings, stage, filled, book, WHICH * PIECES + i, False, HAS_ZEROS)
        w = operand(after[0], after[1], after[2], after[3], xs.dtype, ACC)
        started = warpgroup_mma(w, x, last if i == LAST else before[i], is_async=True)
        running, _, _, _, _ = warpgroup_mma_wait(1, deps=(running, pairs[0], pairs[1], pairs[2], pairs[3]))
        sums += (running,)
        pairs, running = after, started
    return sums + (running,), pairs


@gluon.jit
def settle(rings, state, count, PIECES: gl.constexpr):
    """Return the sums after the last product. Its stage is released."""
    words, scales, zeros, xs, full, empty = rings
    sums, held = state
    LAST: gl.constexpr = PIECES - 1
    last, _, _, _, _ = warpgroup_mma_wait(0, deps=(sums[LAST], held[0], held[1], held[2], held[3]))
    mbarrier.arrive(empty.index(count % words.shape[0]), count=1)
    return sums[:LAST] + (last,)
