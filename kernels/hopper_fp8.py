"""FP8 GEMM on Hopper, scaled by blocks of 128 or by rows and columns, with an accumulator that stays fp32.

Hopper's FP8 tensor core keeps about 14 bits of a running sum, too few for a long K. So each 128-wide step
starts from zero, and its result is added to a true fp32 accumulator ("promotion"). That costs one addition for
128 products, and it hides: the consumer warpgroups share the tensor core, and one promotes while another
multiplies. Scales by blocks are applied at each step: A's (one per row and 128 columns) travel with the tiles
by TMA, B's are one load a step. Scales by rows and columns wait for the finished tile.
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

from kernels.hopper_tiles import Config, cheapest, descriptor, leave, shares, store, take, turn_of, turns_of
from kernels.ring_barriers import ring_barriers

# The cost of a round of tiles, one for each SM, in ns for a column of K. H200, 2026-11-23, from seven shapes between
# 64 x 7168 and 8192 x 8192. Its choice was the fastest of eighteen configurations, or within 2%, in all.
ROUND_NS = {
    Config(consumers=3, block_n=128, block_k=128, group_m=11): 5.15,
    Config(block_n=128, block_k=128, stages=5): 3.9,
    Config(consumers=1, block_n=128, block_k=128, stages=6): 2.95,
    Config(block_n=64, block_k=128, stages=6): 2.7,
    Config(consumers=1, block_n=64, block_k=128, stages=8): 2.2,
}


# What even shares add. 4096^3 takes 119.2 us for 123.6, 4096 x 7168 x 2048 110.1 for 108.3 (H200, 2026-11-24, by blocks)
HANDOVER_NS = {next(iter(ROUND_NS)): 8000}


def pick(m: int, n: int, k: int, processors: int) -> tuple[Config, int]:
    """Choose the configuration, and the width of its even shares, by what rounds and sums handed over cost."""
    return cheapest(m, n, k, processors, ROUND_NS, HANDOVER_NS)


@gluon.jit
def _produce(
    descs,
    rings,
    sizes,
    CONSUMERS: gl.constexpr,
    GROUP_M: gl.constexpr,
    BLOCKS: gl.constexpr,
    EVEN: gl.constexpr,
):
    a_desc, b_desc, s_desc = descs
    a_ring, b_ring, s_ring, full, empty = rings
    STAGES: gl.constexpr = b_ring.shape[0]
    ROWS: gl.constexpr = a_ring.shape[1]
    BLOCK_N: gl.constexpr = b_ring.shape[1]
    BLOCK_K: gl.constexpr = b_ring.shape[2]
    ROW_BYTES: gl.constexpr = a_desc.block_type.nbytes + (s_desc.block_type.nbytes if BLOCKS else 0)
    count = 0
    for u in range(turns_of(sizes, EVEN)):
        tile_m, tile_n, low, high = turn_of(u, sizes, GROUP_M, EVEN)
        for step in range(low, high):
            stage = count % STAGES
            mbarrier.wait(empty.index(stage), (count // STAGES & 1) ^ 1)
            ready = full.index(stage)
            mbarrier.expect(ready, CONSUMERS * ROW_BYTES + b_desc.block_type.nbytes)
            for i in gl.static_range(CONSUMERS):
                m = (tile_m * CONSUMERS + i) * ROWS
                slot = stage * CONSUMERS + i
                tma.async_copy_global_to_shared(a_desc, [m, step * BLOCK_K], ready, a_ring.index(slot))
                if BLOCKS:
                    tma.async_copy_global_to_shared(s_desc, [step, m], ready, s_ring.index(slot))
            b = b_ring.index(stage)
            tma.async_copy_global_to_shared(b_desc, [tile_n * BLOCK_N, step * BLOCK_K], ready, b)
            count += 1


@gluon.jit
def _store(acc, out, piece_m, tile_n, WHICH: gl.constexpr, BUFFERS: gl.constexpr, BLOCKS: gl.constexpr):
    """Scale a finished tile, unless its steps were, and write it."""
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
    BUFFERS: gl.constexpr,
    GROUP_M: gl.constexpr,
    BLOCKS: gl.constexpr,
    EVEN: gl.constexpr,
):
    a_ring, b_ring, s_ring, full, empty = rings
    a_scale_ptr, b_scale_ptr = scale_ptrs
    STAGES: gl.constexpr = b_ring.shape[0]
    ROWS: gl.constexpr = a_ring.shape[1]
    BLOCK_N: gl.constexpr = b_ring.shape[1]
    BLOCK_K: gl.constexpr = b_ring.shape[2]  # of a block of scales too, which is square
    layout: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [4, 1], [16, BLOCK_N, 32])
    flat: gl.constexpr = gl.SwizzledSharedLayout(1, 1, 1, [0])
    zero = gl.zeros([ROWS, BLOCK_N], gl.float32, layout)
    count = 0
    for u in range(turns_of(sizes, EVEN)):
        tile_m, tile_n, low, high = turn_of(u, sizes, GROUP_M, EVEN)
        acc = zero
        if EVEN:
            acc = take(zero, low > 0, sums, sizes[3], WHICH, CONSUMERS)
        for step in range(low, high):
            stage = count % STAGES
            slot = stage * CONSUMERS + WHICH
            if BLOCKS:
                b_scale = gl.load(b_scale_ptr + tile_n * BLOCK_N // BLOCK_K * sizes[2] + step)
            mbarrier.wait(full.index(stage), count // STAGES & 1)
            b = b_ring.index(stage).permute((1, 0))
            part = warpgroup_mma(a_ring.index(slot), b, zero, use_acc=False, is_async=True)
            if BLOCKS:
                a_scale = s_ring.index(slot)._reinterpret(gl.float32, [ROWS], flat)
                a_scale = a_scale.load(gl.SliceLayout(1, layout))
            part = warpgroup_mma_wait(0, deps=(part,))
            mbarrier.arrive(empty.index(stage))
            if BLOCKS:
                acc += part * (a_scale * b_scale)[:, None]
            else:
                acc += part
            count += 1
        out = c_desc, buffers, scale_ptrs, shape
        if EVEN:
            if high < sizes[2]:
                leave(acc, sums, WHICH, CONSUMERS)
            else:
                _store(acc, out, tile_m * CONSUMERS + WHICH, tile_n, WHICH, BUFFERS, BLOCKS)
        else:
            _store(acc, out, tile_m * CONSUMERS + WHICH, tile_n, WHICH, BUFFERS, BLOCKS)
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
    GROUP_M: gl.constexpr,
    STAGES: gl.constexpr,
    BUFFERS: gl.constexpr,
    BLOCKS: gl.constexpr,
    EVEN: gl.constexpr,
):
    """BLOCKS means scales by blocks of 128, otherwise one a row of A and one a column of B."""
    ROWS: gl.constexpr = a_desc.block_type.shape[0]
    BLOCK_K: gl.constexpr = a_desc.block_type.shape[1]
    BLOCK_N: gl.constexpr = b_desc.block_type.shape[0]
    SLOTS: gl.constexpr = STAGES * CONSUMERS
    a_ring = gl.allocate_shared_memory(a_desc.dtype, [SLOTS] + a_desc.block_type.shape, a_desc.layout)
    b_ring = gl.allocate_shared_memory(b_desc.dtype, [STAGES] + b_desc.block_type.shape, b_desc.layout)
    if BLOCKS:
        s_ring = gl.allocate_shared_memory(gl.float32, [SLOTS] + s_desc.block_type.shape, s_desc.layout)
    else:
        s_ring = a_ring  # never read
    c_shape: gl.constexpr = [CONSUMERS * BUFFERS] + c_desc.block_type.shape
    buffers = gl.allocate_shared_memory(c_desc.dtype, c_shape, c_desc.layout)
    full, empty = ring_barriers(STAGES, CONSUMERS)
    fence_async_shared()
    rings = (a_ring, b_ring, s_ring, full, empty)
    sizes = (gl.cdiv(M, ROWS * CONSUMERS), gl.cdiv(N, BLOCK_N), gl.cdiv(K, BLOCK_K), width)
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
                        BUFFERS,
                        GROUP_M,
                        BLOCKS,
                        EVEN,
                    ),
                ),
                (_produce, (descs, rings, sizes, CONSUMERS, GROUP_M, BLOCKS, EVEN)),
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
                        BUFFERS,
                        GROUP_M,
                        BLOCKS,
                        EVEN,
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
                        BUFFERS,
                        GROUP_M,
                        BLOCKS,
                        EVEN,
                    ),
                ),
                (_produce, (descs, rings, sizes, CONSUMERS, GROUP_M, BLOCKS, EVEN)),
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
                        BUFFERS,
                        GROUP_M,
                        BLOCKS,
                        EVEN,
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
                        BUFFERS,
                        GROUP_M,
                        BLOCKS,
                        EVEN,
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
                        BUFFERS,
                        GROUP_M,
                        BLOCKS,
                        EVEN,
                    ),
                ),
                (_produce, (descs, rings, sizes, CONSUMERS, GROUP_M, BLOCKS, EVEN)),
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
    programs, parts, done = shares(c, out, programs, width)
    hopper_fp8_kernel[(programs,)](
        descriptor(a, [c.rows, c.block_k]),
        descriptor(b.t(), [c.block_n, c.block_k]),
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
        GROUP_M=c.group_m,
        STAGES=c.stages,
        BUFFERS=c.buffers,
        BLOCKS=blocks,
        EVEN=width > 0,
        num_warps=4,
    )
    return out
