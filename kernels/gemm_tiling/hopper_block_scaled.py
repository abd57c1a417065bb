"""Block-scaled FP8 GEMM on Hopper: the tensor core adds 128 products, the CUDA cores add the rest.

Hopper's FP8 tensor core keeps about 14 bits of a running sum, too few for a long K. So each 128-wide step
starts from zero, and its result is scaled and added to a true fp32 accumulator ("promotion"). That costs
one FMA for 128 products, and it hides: the consumer warpgroups share the tensor core, and one promotes
while another multiplies. A's scales (one per row and 128 columns) travel with the tiles by TMA; B's are
one load a step.
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

from kernels.gemm_tiling.hopper_gemm import Config, descriptor, store, tile_of
from kernels.ring_barriers import ring_barriers

# H200, 2026-11-20: 8192^3 in 846 us, with two consumers 923; 192 rows read fewer bytes from the L2.
BLOCKS = Config(consumers=3, block_n=128, block_k=128, group_m=11)
FEW_ROWS = Config(block_n=128, block_k=128, stages=5)  # up to 128 rows: a third consumer would idle
FEW_TILES = Config(
    block_n=64, block_k=128, stages=7
)  # 64 x 7168: 112 programs rather than 56 for 132 processors


def pick(m: int, n: int, processors: int) -> Config:
    if m > 128:
        return BLOCKS
    return FEW_TILES if 2 * n <= FEW_ROWS.block_n * processors else FEW_ROWS


@gluon.jit
def _produce(descs, rings, sizes, CONSUMERS: gl.constexpr, GROUP_M: gl.constexpr):
    a_desc, b_desc, s_desc = descs
    a_ring, b_ring, s_ring, full, empty = rings
    tiles_m, tiles_n, steps = sizes
    STAGES: gl.constexpr = b_ring.shape[0]
    ROWS: gl.constexpr = a_ring.shape[1]
    BLOCK_N: gl.constexpr = b_ring.shape[1]
    BLOCK_K: gl.constexpr = b_ring.shape[2]
    ROW_BYTES: gl.constexpr = a_desc.block_type.nbytes + s_desc.block_type.nbytes
    count = 0
    for t in range(gl.program_id(0), tiles_m * tiles_n, gl.num_programs(0)):
        tile_m, tile_n = tile_of(t, tiles_m, tiles_n, GROUP_M)
        for step in range(steps):
            stage = count % STAGES
            mbarrier.wait(empty.index(stage), (count // STAGES & 1) ^ 1)
            ready = full.index(stage)
            mbarrier.expect(ready, CONSUMERS * ROW_BYTES + b_desc.block_type.nbytes)
            for i in gl.static_range(CONSUMERS):
                m = (tile_m * CONSUMERS + i) * ROWS
                slot = stage * CONSUMERS + i
                tma.async_copy_global_to_shared(a_desc, [m, step * BLOCK_K], ready, a_ring.index(slot))
                tma.async_copy_global_to_shared(s_desc, [step, m], ready, s_ring.index(slot))
            b = b_ring.index(stage)
            tma.async_copy_global_to_shared(b_desc, [tile_n * BLOCK_N, step * BLOCK_K], ready, b)
            count += 1


@gluon.jit
def _consume(
    c_desc,
    buffers,
    rings,
    sizes,
    b_scale_ptr,
    WHICH: gl.constexpr,
    CONSUMERS: gl.constexpr,
    BUFFERS: gl.constexpr,
    GROUP_M: gl.constexpr,
):
    a_ring, b_ring, s_ring, full, empty = rings
    tiles_m, tiles_n, steps = sizes
    STAGES: gl.constexpr = b_ring.shape[0]
    ROWS: gl.constexpr = a_ring.shape[1]
    BLOCK_N: gl.constexpr = b_ring.shape[1]
    BLOCK_K: gl.constexpr = b_ring.shape[2]  # of a block of scales too, which is square
    layout: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [4, 1], [16, BLOCK_N, 32])
    flat: gl.constexpr = gl.SwizzledSharedLayout(1, 1, 1, [0])
    zero = gl.zeros([ROWS, BLOCK_N], gl.float32, layout)
    count = 0
    for t in range(gl.program_id(0), tiles_m * tiles_n, gl.num_programs(0)):
        tile_m, tile_n = tile_of(t, tiles_m, tiles_n, GROUP_M)
        acc = zero
        for step in range(steps):
            stage = count % STAGES
            slot = stage * CONSUMERS + WHICH
            b_scale = gl.load(b_scale_ptr + tile_n * BLOCK_N // BLOCK_K * steps + step)
            mbarrier.wait(full.index(stage), count // STAGES & 1)
            b = b_ring.index(stage).permute((1, 0))
            part = warpgroup_mma(a_ring.index(slot), b, zero, use_acc=False, is_async=True)
            scale = s_ring.index(slot)._reinterpret(gl.float32, [ROWS], flat).load(gl.SliceLayout(1, layout))
            part = warpgroup_mma_wait(0, deps=(part,))
            mbarrier.arrive(empty.index(stage))
            acc += part * (scale * b_scale)[:, None]
            count += 1
        store(c_desc, buffers, acc, (tile_m * CONSUMERS + WHICH) * ROWS, tile_n * BLOCK_N, WHICH, BUFFERS)
    tma.store_wait(pendings=0)


@gluon.jit
def hopper_block_scaled_kernel(
    a_desc,
    b_desc,
    s_desc,
    c_desc,
    b_scale_ptr,
    M,
    N,
    K,
    CONSUMERS: gl.constexpr,
    GROUP_M: gl.constexpr,
    STAGES: gl.constexpr,
    BUFFERS: gl.constexpr,
):
    ROWS: gl.constexpr = a_desc.block_type.shape[0]
    BLOCK_K: gl.constexpr = a_desc.block_type.shape[1]
    BLOCK_N: gl.constexpr = b_desc.block_type.shape[0]
    SLOTS: gl.constexpr = STAGES * CONSUMERS
    a_ring = gl.allocate_shared_memory(a_desc.dtype, [SLOTS] + a_desc.block_type.shape, a_desc.layout)
    b_ring = gl.allocate_shared_memory(b_desc.dtype, [STAGES] + b_desc.block_type.shape, b_desc.layout)
    s_ring = gl.allocate_shared_memory(gl.float32, [SLOTS] + s_desc.block_type.shape, s_desc.layout)
    c_shape: gl.constexpr = [CONSUMERS * BUFFERS] + c_desc.block_type.shape
    buffers = gl.allocate_shared_memory(c_desc.dtype, c_shape, c_desc.layout)
    full, empty = ring_barriers(STAGES, CONSUMERS)
    fence_async_shared()
    rings = (a_ring, b_ring, s_ring, full, empty)
    sizes = (gl.cdiv(M, ROWS * CONSUMERS), gl.cdiv(N, BLOCK_N), gl.cdiv(K, BLOCK_K))
    if CONSUMERS == 2:
        gl.warp_specialize(
            [
                (_consume, (c_desc, buffers, rings, sizes, b_scale_ptr, 0, CONSUMERS, BUFFERS, GROUP_M)),
                (_consume, (c_desc, buffers, rings, sizes, b_scale_ptr, 1, CONSUMERS, BUFFERS, GROUP_M)),
                (_produce, ((a_desc, b_desc, s_desc), rings, sizes, CONSUMERS, GROUP_M)),
            ],
            [4, 1],
            [240, 24],
        )
    else:
        gl.warp_specialize(
            [
                (_consume, (c_desc, buffers, rings, sizes, b_scale_ptr, 0, CONSUMERS, BUFFERS, GROUP_M)),
                (_consume, (c_desc, buffers, rings, sizes, b_scale_ptr, 1, CONSUMERS, BUFFERS, GROUP_M)),
                (_consume, (c_desc, buffers, rings, sizes, b_scale_ptr, 2, CONSUMERS, BUFFERS, GROUP_M)),
                (_produce, ((a_desc, b_desc, s_desc), rings, sizes, CONSUMERS, GROUP_M)),
            ],
            [4, 4, 1],
            [160, 160, 24],
        )


def launch(a, b, a_scale, b_scale, out, config: Config, programs: int):
    """out = (a * its scales) @ (b * its scales).

    a (M, K) and b (K, N) are fp8 and contiguous along K; a_scale (K / 128, M) and b_scale, the transpose of
    (N / 128, K / 128), are fp32 and lie so that the scales a tile needs are side by side.
    """
    (M, K), N = a.shape, b.shape[1]
    c = config
    hopper_block_scaled_kernel[(programs,)](
        descriptor(a, [c.rows, c.block_k]),
        descriptor(b.t(), [c.block_n, c.block_k]),
        descriptor(a_scale, [1, c.rows]),
        descriptor(out, [c.rows, c.slice]),
        b_scale,
        M,
        N,
        K,
        CONSUMERS=c.consumers,
        GROUP_M=c.group_m,
        STAGES=c.stages,
        BUFFERS=c.buffers,
        num_warps=4,
    )
    return out
