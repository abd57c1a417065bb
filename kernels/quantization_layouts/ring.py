"""Multiply some rows by a packed weight on Hopper. One warp keeps a ring full, warpgroups unpack in registers and
multiply.

Rows of W are the rows of the product, so an unpacked weight is the tensor cores' operand straight from registers and
is never written anywhere. The copy engine fetches words, scales and X some steps ahead, without registers for data in
flight. Each warpgroup owns one or several times 64 rows and walks along K at a pace of its own (ring_steps.py). All
programs get the same share of all steps, cut where it falls. Programs that share a tile leave their sums in fp32, and
the last program adds them in the order of K. Every run gives the same bits, and no program waits for another.
"""

from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.hopper import (
    fence_async_shared,
    mbarrier,
    tma,
)

from kernels.overlap import gdc_launch_dependents, gdc_wait
from kernels.quantization_layouts.hopper_unpack import BRICKS, STEP, WORDS, book_of
from kernels.quantization_layouts.ring_steps import one_piece, pieces, settle, zero_sums
from kernels.ring_barriers import ring_barriers

barrier = getattr(gl, "barrier", None) or gl.thread_barrier  # Triton 3.7, or 3.6


@gluon.jit
def _share(sizes, EVEN: gl.constexpr):
    """Return this program's first step, counted through all tiles, and the one after its last: a fair share, or whole
    tiles."""
    tiles, steps = sizes[0], sizes[1]
    c = gl.program_id(0)
    if EVEN:
        first = c * (tiles * steps) // gl.num_programs(0)
        last = (c + 1) * (tiles * steps) // gl.num_programs(0)
    else:
        first = c * tiles // gl.num_programs(0) * steps
        last = (c + 1) * tiles // gl.num_programs(0) * steps
    return first, last


@gluon.jit
def _owner(step, sizes):
    """The program whose share holds a step."""
    return ((step + 1) * gl.num_programs(0) - 1) // (sizes[0] * sizes[1])


@gluon.jit
def _place(tile, sizes):
    """Return a tile's expert, and its indices along the rows of W and of X. Tiles along X follow each other."""
    tiles_n, tiles_m = sizes[2], sizes[3]
    return tile // (tiles_n * tiles_m), tile // tiles_m % tiles_n, tile % tiles_m


@gluon.jit
def _fetch_weights(u, first, descs, rings, sizes, HAS_ZEROS: gl.constexpr):
    """Fetch a step's words, scales and zero points into a stage that also expects its rows of X."""
    w_desc, s_desc, z_desc, x_desc = descs
    words, scales, zeros, xs, full, empty = rings
    steps, bricks_each = sizes[1], sizes[6]
    WIDTH: gl.constexpr = scales.shape[2]
    IN_GROUPS: gl.constexpr = xs.shape[2] == STEP  # int8 has half the columns, and no scales but its rows'
    BYTES: gl.constexpr = (
        w_desc.block_type.nbytes + (s_desc.block_type.nbytes if IN_GROUPS else 0) + x_desc.block_type.nbytes
    )
    count = u - first
    stage = count % words.shape[0]
    expert, tile_n, tile_m = _place(u // steps, sizes)
    brick = expert * bricks_each + tile_n * words.shape[1]
    step = u % steps
    mbarrier.wait(empty.index(stage), (count // words.shape[0] & 1) ^ 1)
    ready = full.index(stage)
    if HAS_ZEROS:
        mbarrier.expect(ready, BYTES + z_desc.block_type.nbytes)
        tma.async_copy_global_to_shared(z_desc, [brick, step * WIDTH], ready, zeros.index(stage))
    else:
        mbarrier.expect(ready, BYTES)
    tma.async_copy_global_to_shared(w_desc, [brick, step * WORDS], ready, words.index(stage))
    if IN_GROUPS:
        tma.async_copy_global_to_shared(s_desc, [brick, step * WIDTH], ready, scales.index(stage))


@gluon.jit
def _fetch_x(u, first, descs, rings, sizes):
    x_desc = descs[3]
    xs, full = rings[3], rings[4]
    steps, M = sizes[1], sizes[4]
    stage = (u - first) % xs.shape[0]
    expert, tile_n, tile_m = _place(u // steps, sizes)
    row = expert * M + tile_m * xs.shape[1]
    tma.async_copy_global_to_shared(
        x_desc, [row, u % steps * xs.shape[2]], full.index(stage), xs.index(stage)
    )


@gluon.jit
def _produce(descs, rings, sizes, HAS_ZEROS: gl.constexpr, EVEN: gl.constexpr, EARLY: gl.constexpr):
    first, last = _share(sizes, EVEN)
    ahead = first
    if EARLY:  # the whole ring, for data that no earlier launch writes
        ahead = gl.minimum(last, first + rings[0].shape[0])
        for u in range(first, ahead):
            _fetch_weights(u, first, descs, rings, sizes, HAS_ZEROS)
        gdc_wait()
        for u in range(first, ahead):
            _fetch_x(u, first, descs, rings, sizes)
    for u in range(ahead, last):
        _fetch_weights(u, first, descs, rings, sizes, HAS_ZEROS)
        _fetch_x(u, first, descs, rings, sizes)


@gluon.jit
def _finish(
    acc,
    out,
    sums,
    sizes,
    book_ptr,
    first,
    last,
    PIECE: gl.constexpr,
    PIECES: gl.constexpr,
    BOOK: gl.constexpr,
):
    """Store 64 rows of a tile. If other programs share it, leave this part, and the last one adds them up and stores."""
    y_ptr, stride_ym = out
    part_ptr, done_ptr = sums
    steps, M, N = sizes[1], sizes[4], sizes[5]
    ACC: gl.constexpr = acc.type.layout
    ROWS: gl.constexpr = acc.shape[0]
    COLS: gl.constexpr = acc.shape[1]
    SIZE: gl.constexpr = PIECES * ROWS * COLS
    rows = gl.arange(0, ROWS, gl.SliceLayout(1, ACC))
    cols = gl.arange(0, COLS, gl.SliceLayout(0, ACC))
    tile = first // steps
    begin = tile * steps
    last_here = True
    if last - first < steps:
        at = part_ptr + PIECE * ROWS * COLS + rows[:, None] * COLS + cols[None, :]
        # a program has at most one tile that begins before its share, and one that ends after it
        slot = 2 * gl.program_id(0) + (first == begin).to(gl.int32)
        gl.store(at + slot.to(gl.int64) * SIZE, acc)
        barrier()  # every thread's sums are written before one thread counts
        head, tail = _owner(begin, sizes), _owner(begin + steps - 1, sizes)
        counter = done_ptr + tile * PIECES + PIECE
        last_here = gl.atomic_add(counter, 1, sem="acq_rel") == tail - head
        if last_here:
            gl.store(counter, 0)
            acc = gl.load(at + (2 * head + 1).to(gl.int64) * SIZE)
            for other in range(head + 1, tail + 1):
                acc += gl.load(at + (2 * other).to(gl.int64) * SIZE)
    if last_here:
        expert, tile_n, tile_m = _place(tile, sizes)
        offs_n = (tile_n * PIECES + PIECE) * ROWS + rows
        offs_m = tile_m * COLS + cols
        at_y = y_ptr + (expert * M + offs_m).to(gl.int64)[None, :] * stride_ym + offs_n[:, None]
        if BOOK == "fp4":
            acc *= gl.load(book_ptr)
        elif BOOK == "int8":
            acc *= gl.load(book_ptr + offs_n, mask=offs_n < N, other=0.0)[:, None]
        gl.store(at_y, acc.to(y_ptr.dtype.element_ty), mask=(offs_n < N)[:, None] & (offs_m < M)[None, :])


@gluon.jit
def _consume(
    out,
    sums,
    rings,
    sizes,
    filled,
    book_ptr,
    WHICH: gl.constexpr,
    CONSUMERS: gl.constexpr,
    LATE: gl.constexpr,
    BOOK: gl.constexpr,
    HAS_ZEROS: gl.constexpr,
    EVEN: gl.constexpr,
):
    words, scales, zeros, xs, full, empty = rings
    steps = sizes[1]
    COLS: gl.constexpr = xs.shape[1]
    PIECES: gl.constexpr = words.shape[1] // (BRICKS * CONSUMERS)
    book = ()
    if BOOK == "book":
        book = book_of(book_ptr, scales.shape[2] // 16)
    elif BOOK == "fp4":
        book = (book_ptr,)  # by its length
    begin, behind = _share(sizes, EVEN)
    first = begin
    while first < behind:
        last = gl.minimum(behind, (first // steps + 1) * steps)
        accs = zero_sums(COLS, PIECES)
        if PIECES == 1:
            acc = accs[0]
            for u in range(first, last):
                acc = one_piece(rings, acc, accs[0], u - begin, filled, book, WHICH, LATE, HAS_ZEROS)
            accs = (acc,)
        else:
            state = (accs, (filled, filled, filled, filled))
            state = pieces(rings, state, first - begin, filled, book, True, WHICH, PIECES, HAS_ZEROS)
            for u in range(first + 1, last):
                state = pieces(rings, state, u - begin, filled, book, False, WHICH, PIECES, HAS_ZEROS)
            accs = settle(rings, state, last - 1 - begin, PIECES)
        for i in gl.static_range(PIECES):
            _finish(
                accs[i], out, sums, sizes, book_ptr, first, last, WHICH * PIECES + i, CONSUMERS * PIECES, BOOK
            )
        first = last


_SIZES = ["tiles", "steps", "tiles_n", "tiles_m", "M", "N", "bricks_each", "stride_ym"]


@gluon.jit(do_not_specialize=["done_ptr", "filled", *_SIZES])  # one compiled kernel for every shape
def ring_kernel(
    w_desc,
    s_desc,
    z_desc,
    x_desc,
    y_ptr,
    part_ptr,
    done_ptr,
    book_ptr,
    filled,
    tiles,
    steps,
    tiles_n,
    tiles_m,
    M,
    N,
    bricks_each,
    stride_ym,
    CONSUMERS: gl.constexpr,
    STAGES: gl.constexpr,
    LATE: gl.constexpr,
    BOOK: gl.constexpr,
    HAS_ZEROS: gl.constexpr,
    EVEN: gl.constexpr,
    EARLY: gl.constexpr,
    REGISTERS: gl.constexpr,
):
    if EARLY:
        gdc_launch_dependents()
    words = gl.allocate_shared_memory(gl.int32, [STAGES] + w_desc.block_type.shape, w_desc.layout)
    scales = words
    if BOOK != "int8":
        scales = gl.allocate_shared_memory(s_desc.dtype, [STAGES] + s_desc.block_type.shape, s_desc.layout)
    xs = gl.allocate_shared_memory(x_desc.dtype, [STAGES] + x_desc.block_type.shape, x_desc.layout)
    zeros = scales
    if HAS_ZEROS:
        zeros = gl.allocate_shared_memory(z_desc.dtype, [STAGES] + z_desc.block_type.shape, z_desc.layout)
    full, empty = ring_barriers(STAGES, CONSUMERS)
    fence_async_shared()
    rings = (words, scales, zeros, xs, full, empty)
    descs = (w_desc, s_desc, z_desc, x_desc)
    sizes = (tiles, steps, tiles_n, tiles_m, M, N, bricks_each)
    out = (y_ptr, stride_ym)
    sums = (part_ptr, done_ptr)
    if CONSUMERS == 2:
        gl.warp_specialize(
            [
                (_consume, (out, sums, rings, sizes, filled, book_ptr, 0, 2, LATE, BOOK, HAS_ZEROS, EVEN)),
                (_consume, (out, sums, rings, sizes, filled, book_ptr, 1, 2, LATE, BOOK, HAS_ZEROS, EVEN)),
                (_produce, (descs, rings, sizes, HAS_ZEROS, EVEN, EARLY)),
            ],
            [4, 1],
            [REGISTERS, 24],
        )
    else:
        gl.warp_specialize(
            [
                (_consume, (out, sums, rings, sizes, filled, book_ptr, 0, 4, LATE, BOOK, HAS_ZEROS, EVEN)),
                (_consume, (out, sums, rings, sizes, filled, book_ptr, 1, 4, LATE, BOOK, HAS_ZEROS, EVEN)),
                (_consume, (out, sums, rings, sizes, filled, book_ptr, 2, 4, LATE, BOOK, HAS_ZEROS, EVEN)),
                (_consume, (out, sums, rings, sizes, filled, book_ptr, 3, 4, LATE, BOOK, HAS_ZEROS, EVEN)),
                (_produce, (descs, rings, sizes, HAS_ZEROS, EVEN, EARLY)),
            ],
            [4, 4, 4, 1],
            [REGISTERS, REGISTERS, REGISTERS, 24],
        )
