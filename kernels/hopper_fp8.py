"""Multiply FP8 on Hopper, scaled by blocks of 128 or by rows and columns, with an accumulator that stays fp32.

Hopper's FP8 tensor core keeps about 14 bits of a running sum, too few for a long K. So each 128-wide step
starts from zero, and its result is added to a true fp32 accumulator ("promotion"). That costs one addition for
128 products, and it hides: the consumer warpgroups share the tensor core, and one promotes while another
multiplies. Scales by blocks are applied at each step: A's (one per row and 128 columns) travel with the tiles
by TMA, B's are loaded a step ahead. Scales by rows and columns wait for the finished tile.

A tile of 128 x 256 loads a quarter less than two of 128 x 128. Its sums and a whole step's products don't fit a
warpgroup's registers, so a step takes B in two boxes, and both products use the same registers in turn.

4096^3 by blocks on an H200: the floor is 103 us by the measured ceiling, and this takes 103 (cuBLAS 113). Tiles of
192 x 128 took 118, because they read more of the L2. Tried and lost: even shares of the wide tiles (112 us), scales
loaded in their own step (a product waited for the load), three consumers that let go of a stage late (132).
Still slower than cuBLAS by blocks: 1024 x 2048 x 4096 (.95), 512 x 4096 x 4096 (.97) and 2048 x 7168 x 4096 (.98).
"""

from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.hopper import (
    fence_async_shared,
    mbarrier,
    tma,
    warpgroup_mma,
    warpgroup_mma_wait,
)

from kernels.hopper_tiles import Config, cheapest, descriptor, leave, store, take, turn_of, turns_of, walk_of
from kernels.ring_barriers import ring_barriers

SCALE_BLOCK = gl.constexpr(128)
THREE = Config(consumers=3, block_n=128, block_k=128, group_m=11)
WIDE = Config(block_n=256, block_k=128, across=2)
SQUARE, NARROW = (
    Config(block_n=128, block_k=128, stages=5),
    Config(consumers=1, block_n=128, block_k=128, stages=6),
)
# The cost of a round of tiles, one for each SM, in ns for a column of K: scales by blocks, then by rows. H200,
# 2026-11-24, from eighteen shapes between 64 x 4096 and 8192 x 8192. The choice is within 1.5% of the best of six.
ROUND_NS = {
    WIDE: 6.45,
    THREE: 5.05,
    SQUARE: 3.7,
    NARROW: 2.6,
    Config(block_n=64, block_k=128, stages=6): 2.7,
    Config(consumers=1, block_n=64, block_k=128, stages=8): 2.2,
}
ROWS_NS = ROUND_NS | {WIDE: 6.4, THREE: 4.8, SQUARE: 3.4, NARROW: 2.95}
# Cost of even shares. By rounds, three consumers take 123.5 us for 4096^3 by blocks, by even shares 118.1.
HANDOVER_NS = {THREE: 8000}


def pick(m: int, n: int, k: int, processors: int, blocks: bool) -> tuple[Config, int]:
    """Choose the configuration, and the width of its even shares, by what rounds and sums handed over cost."""
    return cheapest(m, n, k, processors, ROUND_NS if blocks else ROWS_NS, HANDOVER_NS)


@gluon.jit
def _produce(
    descs,
    rings,
    sizes,
    CONSUMERS: gl.constexpr,
    ACROSS: gl.constexpr,
    GROUP_M: gl.constexpr,
    BLOCKS: gl.constexpr,
    WALK: gl.constexpr,
):
    a_desc, b_desc, s_desc = descs
    a_ring, b_ring, s_ring, full, empty = rings
    STAGES: gl.constexpr = b_ring.shape[0] // ACROSS
    ROWS: gl.constexpr = a_ring.shape[1]
    BLOCK_N: gl.constexpr = b_ring.shape[1]
    BLOCK_K: gl.constexpr = b_ring.shape[2]
    ROW_BYTES: gl.constexpr = a_desc.block_type.nbytes + (s_desc.block_type.nbytes if BLOCKS else 0)
    count = 0
    for u in range(turns_of(sizes, WALK)):
        tile_m, tile_n, low, high = turn_of(u, sizes, GROUP_M, WALK)
        for step in range(low, high):
            stage = count % STAGES
            mbarrier.wait(empty.index(stage), (count // STAGES & 1) ^ 1)
            ready = full.index(stage)
            mbarrier.expect(ready, CONSUMERS * ROW_BYTES + ACROSS * b_desc.block_type.nbytes)
            for i in gl.static_range(CONSUMERS):
                m = (tile_m * CONSUMERS + i) * ROWS
                slot = stage * CONSUMERS + i
                tma.async_copy_global_to_shared(a_desc, [m, step * BLOCK_K], ready, a_ring.index(slot))
                if BLOCKS:
                    tma.async_copy_global_to_shared(s_desc, [step, m], ready, s_ring.index(slot))
            for h in gl.static_range(ACROSS):
                n = (tile_n * ACROSS + h) * BLOCK_N
                b = b_ring.index(stage * ACROSS + h)
                tma.async_copy_global_to_shared(b_desc, [n, step * BLOCK_K], ready, b)
            count += 1


@gluon.jit
def _store(acc, out, piece_m, tile_n, WHICH: gl.constexpr, BUFFERS: gl.constexpr, BLOCKS: gl.constexpr):
    """Scale a finished tile, unless its steps were scaled already, and write the result."""
    c_desc, buffers, scale_ptrs, shape = out
    a_scale_ptr, b_scale_ptr = scale_ptrs
    M, N = shape
    layout: gl.constexpr = acc.type.layout
    m, n = piece_m * acc.shape[0], tile_n * acc.shape[1]
    if not BLOCKS:
        row = m + gl.arange(0, acc.shape[0], gl.SliceLayout(1, layout))
        column = n + gl.arange(0, acc.shape[1], gl.SliceLayout(0, layout))
        acc *= gl.load(a_scale_ptr + row, mask=row < M, other=0.0)[:, None]
        acc *= gl.load(b_scale_ptr + column, mask=column < N, other=0.0)[None, :]
    store(c_desc, buffers, acc, m, n, WHICH, BUFFERS)


@gluon.jit
def _b_scales(scales, tile_n, step, BLOCK_N: gl.constexpr, ACROSS: gl.constexpr, BLOCKS: gl.constexpr):
    """Return a step's scale of each box of B, or nothing for scales that wait for the tile."""
    ptr, steps, blocks = scales
    found = ()
    if BLOCKS:
        for h in gl.static_range(ACROSS):  # the last tile's second box may begin past B's end
            block = gl.minimum((tile_n * ACROSS + h) * BLOCK_N // SCALE_BLOCK, blocks - 1)
            found += (gl.load(ptr + block * steps + step),)
    return found


@gluon.jit
def _add_here(acc, part, scale):
    """Return acc + part * scale, computed before the next product begins, so that both may use the same registers."""
    scale, _ = gl.broadcast(scale, part)
    return gl.inline_asm_elementwise(
        "fma.rn.f32 $0, $1, $2, $3;", "=f,f,f,f", [part, scale, acc], gl.float32, is_pure=False, pack=1
    )


@gluon.jit
def _consume(
    c_desc,
    buffers,
    rings,
    sizes,
    scale_ptrs,
    shape,
    sums,
    WHICH: gl.constexpr,
    CONSUMERS: gl.constexpr,
    ACROSS: gl.constexpr,
    BUFFERS: gl.constexpr,
    GROUP_M: gl.constexpr,
    BLOCKS: gl.constexpr,
    WALK: gl.constexpr,
):
    a_ring, b_ring, s_ring, full, empty = rings
    STAGES: gl.constexpr = b_ring.shape[0] // ACROSS
    ROWS: gl.constexpr = a_ring.shape[1]
    BLOCK_N: gl.constexpr = b_ring.shape[1]
    layout: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [4, 1], [16, BLOCK_N, 32])
    flat: gl.constexpr = gl.SwizzledSharedLayout(1, 1, 1, [0])
    # Of three consumers two multiply while the third waits, and the producer needs a stage back immediately. Waiting and
    # letting go during a product made 4096^3 by blocks 7% slower with three, and up to 11% faster with one or two.
    LATE: gl.constexpr = CONSUMERS < 3
    zero = gl.zeros([ROWS, BLOCK_N], gl.float32, layout)
    part = zero
    stage, phase, before = 0, 0, 0
    for u in range(turns_of(sizes, WALK)):
        tile_m, tile_n, low, high = turn_of(u, sizes, GROUP_M, WALK)
        accs = ()
        for h in gl.static_range(ACROSS):
            if WALK == "even":
                accs += (take(zero, low > 0, sums, sizes[3], WHICH * ACROSS + h, CONSUMERS * ACROSS),)
            else:
                accs += (zero,)
        b_scales = scale_ptrs[1], sizes[2], gl.cdiv(shape[1], SCALE_BLOCK)
        b_next = _b_scales(b_scales, tile_n, low, BLOCK_N, ACROSS, BLOCKS)
        if LATE:
            mbarrier.wait(full.index(stage), phase, pred=low < high)
        for step in range(low, high):
            slot = stage * CONSUMERS + WHICH
            around = stage + 1 == STAGES
            after, after_phase = gl.where(around, 0, stage + 1), gl.where(around, phase ^ 1, phase)
            b_now = b_next
            added = ()
            if not LATE:
                mbarrier.wait(full.index(stage), phase)
            for h in gl.static_range(ACROSS):
                b = b_ring.index(stage * ACROSS + h).permute((1, 0))
                part = warpgroup_mma(a_ring.index(slot), b, part, use_acc=False, is_async=True)
                if h == 0:  # what else a step needs is done while the tensor core multiplies
                    if LATE:
                        mbarrier.arrive(empty.index(before), pred=step > low)
                    next_step = gl.minimum(step + 1, sizes[2] - 1)
                    b_next = _b_scales(b_scales, tile_n, next_step, BLOCK_N, ACROSS, BLOCKS)
                    if BLOCKS:
                        a_scale = s_ring.index(slot)._reinterpret(gl.float32, [ROWS], flat)
                        a_scale = a_scale.load(gl.SliceLayout(1, layout))
                if h == ACROSS - 1 and LATE:
                    mbarrier.wait(full.index(after), after_phase, pred=step + 1 < high)
                part = warpgroup_mma_wait(0, deps=(part,))
                if h == ACROSS - 1 and not LATE:
                    mbarrier.arrive(empty.index(stage))
                if BLOCKS:
                    added += (_add_here(accs[h], part, (a_scale * b_now[h])[:, None]),)
                else:
                    added += (accs[h] + part,)
            accs = added
            before, stage, phase = stage, after, after_phase
        if LATE:
            mbarrier.arrive(empty.index(before), pred=low < high)
        out = c_desc, buffers, scale_ptrs, shape
        for h in gl.static_range(ACROSS):
            column = tile_n * ACROSS + h
            if WALK == "even":
                if high < sizes[2]:
                    leave(accs[h], sums, WHICH * ACROSS + h, CONSUMERS * ACROSS)
                else:
                    _store(accs[h], out, tile_m * CONSUMERS + WHICH, column, WHICH, BUFFERS, BLOCKS)
            else:
                _store(accs[h], out, tile_m * CONSUMERS + WHICH, column, WHICH, BUFFERS, BLOCKS)
    tma.store_wait(pendings=0)


@gluon.jit(do_not_specialize=["done_ptr", "width"])
def hopper_fp8_kernel(
    a_desc,
    b_desc,
    s_desc,
    c_desc,
    a_scale_ptr,
    b_scale_ptr,
    part_ptr,
    done_ptr,
    M,
    N,
    K,
    width,
    CONSUMERS: gl.constexpr,
    ACROSS: gl.constexpr,
    GROUP_M: gl.constexpr,
    STAGES: gl.constexpr,
    BUFFERS: gl.constexpr,
    BLOCKS: gl.constexpr,
    WALK: gl.constexpr,
):
    """BLOCKS means scales by blocks of 128, otherwise one a row of A and one a column of B. ACROSS is boxes of B a step."""
    ROWS: gl.constexpr = a_desc.block_type.shape[0]
    BLOCK_K: gl.constexpr = a_desc.block_type.shape[1]
    BLOCK_N: gl.constexpr = b_desc.block_type.shape[0]
    SLOTS: gl.constexpr = STAGES * CONSUMERS
    a_ring = gl.allocate_shared_memory(a_desc.dtype, [SLOTS] + a_desc.block_type.shape, a_desc.layout)
    b_ring = gl.allocate_shared_memory(
        b_desc.dtype, [STAGES * ACROSS] + b_desc.block_type.shape, b_desc.layout
    )
    if BLOCKS:
        s_ring = gl.allocate_shared_memory(gl.float32, [SLOTS] + s_desc.block_type.shape, s_desc.layout)
    else:
        s_ring = a_ring  # never read
    c_shape: gl.constexpr = [CONSUMERS * BUFFERS] + c_desc.block_type.shape
    buffers = gl.allocate_shared_memory(c_desc.dtype, c_shape, c_desc.layout)
    full, empty = ring_barriers(STAGES, CONSUMERS)
    fence_async_shared()
    rings = (a_ring, b_ring, s_ring, full, empty)
    sizes = (gl.cdiv(M, ROWS * CONSUMERS), gl.cdiv(N, BLOCK_N * ACROSS), gl.cdiv(K, BLOCK_K), width)
    sums = (part_ptr, done_ptr)
    descs, scales, shape = (a_desc, b_desc, s_desc), (a_scale_ptr, b_scale_ptr), (M, N)
    if CONSUMERS == 1:
        gl.warp_specialize(
            [
                (
                    _consume,
                    (
                        c_desc,
                        buffers,
                        rings,
                        sizes,
                        scales,
                        shape,
                        sums,
                        0,
                        CONSUMERS,
                        ACROSS,
                        BUFFERS,
                        GROUP_M,
                        BLOCKS,
                        WALK,
                    ),
                ),
                (_produce, (descs, rings, sizes, CONSUMERS, ACROSS, GROUP_M, BLOCKS, WALK)),
            ],
            [1],
            [24],
        )
    elif CONSUMERS == 2:
        gl.warp_specialize(
            [
                (
                    _consume,
                    (
                        c_desc,
                        buffers,
                        rings,
                        sizes,
                        scales,
                        shape,
                        sums,
                        0,
                        CONSUMERS,
                        ACROSS,
                        BUFFERS,
                        GROUP_M,
                        BLOCKS,
                        WALK,
                    ),
                ),
                (
                    _consume,
                    (
                        c_desc,
                        buffers,
                        rings,
                        sizes,
                        scales,
                        shape,
                        sums,
                        1,
                        CONSUMERS,
                        ACROSS,
                        BUFFERS,
                        GROUP_M,
                        BLOCKS,
                        WALK,
                    ),
                ),
                (_produce, (descs, rings, sizes, CONSUMERS, ACROSS, GROUP_M, BLOCKS, WALK)),
            ],
            [4, 1],
            [240, 24],
        )
    else:
        gl.warp_specialize(
            [
                (
                    _consume,
                    (
                        c_desc,
                        buffers,
                        rings,
                        sizes,
                        scales,
                        shape,
                        sums,
                        0,
                        CONSUMERS,
                        ACROSS,
                        BUFFERS,
                        GROUP_M,
                        BLOCKS,
                        WALK,
                    ),
                ),
                (
                    _consume,
                    (
                        c_desc,
                        buffers,
                        rings,
                        sizes,
                        scales,
                        shape,
                        sums,
                        1,
                        CONSUMERS,
                        ACROSS,
                        BUFFERS,
                        GROUP_M,
                        BLOCKS,
                        WALK,
                    ),
                ),
                (
                    _consume,
                    (
                        c_desc,
                        buffers,
                        rings,
                        sizes,
                        scales,
                        shape,
                        sums,
                        2,
                        CONSUMERS,
                        ACROSS,
                        BUFFERS,
                        GROUP_M,
                        BLOCKS,
                        WALK,
                    ),
                ),
                (_produce, (descs, rings, sizes, CONSUMERS, ACROSS, GROUP_M, BLOCKS, WALK)),
            ],
            [4, 4, 1],
            [160, 160, 24],
        )


def launch(a, b, a_scale, b_scale, out, config: Config, programs: int, width: int = 0):
    """out = (a * its scales) @ (b * its scales).

    a (M, K) and b (K, N) are fp8 and contiguous along K. Scales are fp32, by blocks: a_scale (K / 128, M) and
    b_scale, the transpose of (N / 128, K / 128), in memory so that the scales a tile needs are neighbours.
    Or they are (M,) and (N,), one a row of a and one a column of b.
    """
    (M, K), N = a.shape, b.shape[1]
    c, blocks = config, a_scale.ndim == 2
    c_desc = descriptor(out, [c.rows, c.slice])
    grid, walk, parts, done = walk_of(c, out, programs, width)
    hopper_fp8_kernel[grid](
        descriptor(a, [c.rows, c.block_k]),
        descriptor(b.t(), [c.block_n // c.across, c.block_k]),
        descriptor(a_scale, [1, c.rows]) if blocks else c_desc,  # of rows no scale is fetched
        c_desc,
        a_scale,
        b_scale,
        parts,
        done,
        M,
        N,
        K,
        max(width, 1),
        CONSUMERS=c.consumers,
        ACROSS=c.across,
        GROUP_M=c.group_m,
        STAGES=c.stages,
        BUFFERS=c.buffers,
        BLOCKS=blocks,
        WALK=walk,
        num_warps=4,
    )
    return out
