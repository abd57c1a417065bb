"""Multiply on Hopper, where one warp moves tiles, one to three warpgroups multiply, and neither side waits.

A producer warp keeps a ring of STAGES tiles of A and B full with TMA. Each consumer warpgroup owns ROWS rows of the
output tile and feeds the tensor core from shared memory, one wgmma always in flight. The grid is persistent. While
the consumers turn a finished tile into 16 bits and store it slice by slice, the producer has already filled the ring
for the next tile. Tiles are walked in groups of GROUP_M rows, so that the L2 serves most loads.

1024^3 takes 8.8 us, as cuBLAS does. Tried there and lost: stores without TMA (1 us more), 6 stages, tiles of 128 x 64.
Still slower than cuBLAS: 384 x 6144 x 4096 (.75) and 576 x 1024 x 4096 (.87), where tiles leave SMs idle.
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


@gluon.jit
def _produce(
    descs,
    rings,
    sizes,
    CONSUMERS: gl.constexpr,
    A_T: gl.constexpr,
    B_T: gl.constexpr,
    GROUP_M: gl.constexpr,
    WALK: gl.constexpr,
):
    a_desc, b_desc = descs
    a_ring, b_ring, full, empty = rings
    STAGES: gl.constexpr = b_ring.shape[0]
    ROWS: gl.constexpr = a_ring.shape[2 if A_T else 1]
    BLOCK_K: gl.constexpr = a_ring.shape[1 if A_T else 2]
    BLOCK_N: gl.constexpr = b_ring.shape[1 if B_T else 2]
    BYTES: gl.constexpr = CONSUMERS * a_desc.block_type.nbytes + b_desc.block_type.nbytes
    count = 0
    for u in range(turns_of(sizes, WALK)):
        tile_m, tile_n, low, high = turn_of(u, sizes, GROUP_M, WALK)
        n = tile_n * BLOCK_N
        for step in range(low, high):
            stage = count % STAGES
            k = step * BLOCK_K
            mbarrier.wait(empty.index(stage), (count // STAGES & 1) ^ 1)
            ready = full.index(stage)
            mbarrier.expect(ready, BYTES)
            for i in gl.static_range(CONSUMERS):
                m = (tile_m * CONSUMERS + i) * ROWS
                a = a_ring.index(stage * CONSUMERS + i)
                tma.async_copy_global_to_shared(a_desc, [k, m] if A_T else [m, k], ready, a)
            tma.async_copy_global_to_shared(b_desc, [n, k] if B_T else [k, n], ready, b_ring.index(stage))
            count += 1


@gluon.jit
def _consume(
    c_desc,
    buffers,
    rings,
    sizes,
    sums,
    WHICH: gl.constexpr,
    CONSUMERS: gl.constexpr,
    BUFFERS: gl.constexpr,
    A_T: gl.constexpr,
    B_T: gl.constexpr,
    GROUP_M: gl.constexpr,
    WALK: gl.constexpr,
):
    a_ring, b_ring, full, empty = rings
    STAGES: gl.constexpr = b_ring.shape[0]
    ROWS: gl.constexpr = buffers.shape[1]
    BLOCK_N: gl.constexpr = b_ring.shape[1 if B_T else 2]
    layout: gl.constexpr = gl.NVMMADistributedLayout(
        [3, 0], [4, 1], [16, 128 if CONSUMERS == 3 else BLOCK_N, 16]
    )
    count = 0
    for u in range(turns_of(sizes, WALK)):
        tile_m, tile_n, low, high = turn_of(u, sizes, GROUP_M, WALK)
        acc = gl.zeros([ROWS, BLOCK_N], gl.float32, layout)
        if WALK == "even":
            acc = take(acc, low > 0, sums, sizes[3], WHICH, CONSUMERS)
        for step in range(low, high):
            stage = count % STAGES
            mbarrier.wait(full.index(stage), count // STAGES & 1)
            a = a_ring.index(stage * CONSUMERS + WHICH)
            b = b_ring.index(stage)
            a = a.permute((1, 0)) if A_T else a
            b = b.permute((1, 0)) if B_T else b
            acc = warpgroup_mma(a, b, acc, is_async=True)
            acc = warpgroup_mma_wait(1, deps=(acc,))
            mbarrier.arrive(empty.index((count + STAGES - 1) % STAGES), pred=step > low)
            count += 1
        acc = warpgroup_mma_wait(0, deps=(acc,))
        mbarrier.arrive(empty.index((count + STAGES - 1) % STAGES))
        m, n = (tile_m * CONSUMERS + WHICH) * ROWS, tile_n * BLOCK_N
        if WALK == "even":
            if high < sizes[2]:
                leave(acc, sums, WHICH, CONSUMERS)
            else:
                store(c_desc, buffers, acc, m, n, WHICH, BUFFERS)
        else:
            store(c_desc, buffers, acc, m, n, WHICH, BUFFERS)
    tma.store_wait(pendings=0)


@gluon.jit(do_not_specialize=["done_ptr", "width"])
def hopper_gemm_kernel(
    a_desc,
    b_desc,
    c_desc,
    part_ptr,
    done_ptr,
    M,
    N,
    K,
    width,
    A_T: gl.constexpr,
    B_T: gl.constexpr,
    CONSUMERS: gl.constexpr,
    GROUP_M: gl.constexpr,
    STAGES: gl.constexpr,
    BUFFERS: gl.constexpr,
    WALK: gl.constexpr,
):
    ROWS: gl.constexpr = a_desc.block_type.shape[1 if A_T else 0]
    BLOCK_K: gl.constexpr = a_desc.block_type.shape[0 if A_T else 1]
    BLOCK_N: gl.constexpr = b_desc.block_type.shape[0 if B_T else 1]
    a_ring = gl.allocate_shared_memory(
        a_desc.dtype, [STAGES * CONSUMERS] + a_desc.block_type.shape, a_desc.layout
    )
    b_ring = gl.allocate_shared_memory(b_desc.dtype, [STAGES] + b_desc.block_type.shape, b_desc.layout)
    c_shape: gl.constexpr = [CONSUMERS * BUFFERS] + c_desc.block_type.shape
    buffers = gl.allocate_shared_memory(c_desc.dtype, c_shape, c_desc.layout)
    full, empty = ring_barriers(STAGES, CONSUMERS)
    fence_async_shared()
    rings = (a_ring, b_ring, full, empty)
    sizes = (gl.cdiv(M, ROWS * CONSUMERS), gl.cdiv(N, BLOCK_N), gl.cdiv(K, BLOCK_K), width)
    sums = (part_ptr, done_ptr)
    if CONSUMERS == 1:
        gl.warp_specialize(
            [
                (
                    _consume,
                    (c_desc, buffers, rings, sizes, sums, 0, CONSUMERS, BUFFERS, A_T, B_T, GROUP_M, WALK),
                ),
                (_produce, ((a_desc, b_desc), rings, sizes, CONSUMERS, A_T, B_T, GROUP_M, WALK)),
            ],
            [1],
            [24],
        )
    elif CONSUMERS == 2:
        gl.warp_specialize(
            [
                (
                    _consume,
                    (c_desc, buffers, rings, sizes, sums, 0, CONSUMERS, BUFFERS, A_T, B_T, GROUP_M, WALK),
                ),
                (
                    _consume,
                    (c_desc, buffers, rings, sizes, sums, 1, CONSUMERS, BUFFERS, A_T, B_T, GROUP_M, WALK),
                ),
                (_produce, ((a_desc, b_desc), rings, sizes, CONSUMERS, A_T, B_T, GROUP_M, WALK)),
            ],
            [4, 1],
            [240, 24],
        )
    else:
        gl.warp_specialize(
            [
                (
                    _consume,
                    (c_desc, buffers, rings, sizes, sums, 0, CONSUMERS, BUFFERS, A_T, B_T, GROUP_M, WALK),
                ),
                (
                    _consume,
                    (c_desc, buffers, rings, sizes, sums, 1, CONSUMERS, BUFFERS, A_T, B_T, GROUP_M, WALK),
                ),
                (
                    _consume,
                    (c_desc, buffers, rings, sizes, sums, 2, CONSUMERS, BUFFERS, A_T, B_T, GROUP_M, WALK),
                ),
                (_produce, ((a_desc, b_desc), rings, sizes, CONSUMERS, A_T, B_T, GROUP_M, WALK)),
            ],
            [4, 4, 1],
            [160, 160, 24],
        )


CONFIGS = {
    "few": Config(consumers=1, block_n=64, block_k=128, stages=6),
    "narrow": Config(consumers=1, block_n=128, stages=8),
    "small": Config(block_n=64, block_k=128),
    "square": Config(block_n=128, stages=6),
    "big": Config(group_m=16),  # 4096^3 in 178 us (179 with groups of 8)
    "huge": Config(),  # 8192^3 in 1407 us (1440 with groups of 16)
    "three consumers": Config(consumers=3, stages=3),  # fewer bytes from the L2, 9% slower where it keeps up
}
# The cost of a round of tiles, one for each SM, in ns for a column of K. H200, 2026-11-23, median of twelve shapes
# from 128 x 4096 to 4096 x 6144. Its choice is within 1% of the best of twenty configurations in all twelve.
ROUND_NS = {"big": 10.9, "square": 6.0, "small": 4.3, "narrow": 3.2, "few": 2.6}
ONE_CONSUMER = (
    "narrow",
    "few",
)  # measured where a is dense along K, and b as a linear layer stores its weight
BIG = 4096 * 4096


# Cost of even shares. 512 x 14336 x 4096 takes 89.8 us for 93.7, 512 x 28672 x 4096 183.7 for 181.2 (H200, 2026-11-24)
HANDOVER_NS = {CONFIGS["square"]: 5300}


def pick(m: int, n: int, k: int, processors: int, linear: bool = True) -> tuple[Config, int]:
    """Choose the configuration, and the width of its even shares, by what rounds and sums handed over cost. Large
    outputs are walked in shorter groups."""
    costs = {CONFIGS[name]: ns for name, ns in ROUND_NS.items() if linear or name not in ONE_CONSUMER}
    config, width = cheapest(m, n, k, processors, costs, HANDOVER_NS if linear else {})
    return CONFIGS["huge"] if config == CONFIGS["big"] and m * n > BIG else config, width


def launch(a, b, out, config: Config, programs: int, width: int = 0):
    """Compute out = a @ b. Each operand is contiguous along one dimension, its other stride a multiple of 16 bytes."""
    (M, K), N = a.shape, b.shape[1]
    a_t, b_t = a.stride(1) != 1, b.stride(1) != 1
    c, rows, block_k = config, config.rows, config.block_k
    a_desc = descriptor(a.t(), [block_k, rows]) if a_t else descriptor(a, [rows, block_k])
    b_desc = descriptor(b.t(), [c.block_n, block_k]) if b_t else descriptor(b, [block_k, c.block_n])
    c_desc = descriptor(out, [rows, c.slice])
    grid, walk, parts, done = walk_of(c, out, programs, width)
    hopper_gemm_kernel[grid](
        a_desc,
        b_desc,
        c_desc,
        parts,
        done,
        M,
        N,
        K,
        max(width, 1),
        A_T=a_t,
        B_T=b_t,
        CONSUMERS=c.consumers,
        GROUP_M=c.group_m,
        STAGES=c.stages,
        BUFFERS=c.buffers,
        WALK=walk,
        num_warps=4,
    )
    return out
