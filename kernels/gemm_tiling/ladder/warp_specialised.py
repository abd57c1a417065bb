"""Give each warp one task, which plain Triton can't say on Hopper. One warp fetches, two warpgroups multiply.

The fetching warp runs ahead until the ring of STAGES tiles is full. The multiplying ones never issue a copy. A
program still owns one tile of C and ends with it, so no warp fetches while the result is stored.
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

from kernels.hopper_tiles import descriptor, store, tile_of
from kernels.ring_barriers import ring_barriers

CONSUMERS = gl.constexpr(2)
SLICE = 64  # columns stored at a time


@gluon.jit
def _fetch(a_desc, b_desc, rings, m, n, steps):
    a_ring, b_ring, full, empty = rings
    STAGES: gl.constexpr = b_ring.shape[0]
    ROWS: gl.constexpr = a_ring.shape[1]
    BLOCK_K: gl.constexpr = a_ring.shape[2]
    for step in range(steps):
        stage = step % STAGES
        mbarrier.wait(empty.index(stage), (step // STAGES & 1) ^ 1)
        mbarrier.expect(full.index(stage), CONSUMERS * a_desc.block_type.nbytes + b_desc.block_type.nbytes)
        for i in gl.static_range(CONSUMERS):
            at = [m + i * ROWS, step * BLOCK_K]
            tma.async_copy_global_to_shared(
                a_desc, at, full.index(stage), a_ring.index(stage * CONSUMERS + i)
            )
        tma.async_copy_global_to_shared(b_desc, [step * BLOCK_K, n], full.index(stage), b_ring.index(stage))


@gluon.jit
def _multiply(c_desc, buffers, rings, m, n, steps, WHICH: gl.constexpr):
    a_ring, b_ring, full, empty = rings
    STAGES: gl.constexpr = b_ring.shape[0]
    ROWS: gl.constexpr = a_ring.shape[1]
    BLOCK_N: gl.constexpr = b_ring.shape[2]
    layout: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [4, 1], [16, BLOCK_N, 16])
    acc = gl.zeros([ROWS, BLOCK_N], gl.float32, layout)
    for step in range(steps):
        stage = step % STAGES
        mbarrier.wait(full.index(stage), step // STAGES & 1)
        acc = warpgroup_mma(a_ring.index(stage * CONSUMERS + WHICH), b_ring.index(stage), acc, is_async=True)
        acc = warpgroup_mma_wait(1, deps=(acc,))  # the product before this one is done, so its tiles may go
        mbarrier.arrive(empty.index((step + STAGES - 1) % STAGES), pred=step > 0)
    acc = warpgroup_mma_wait(0, deps=(acc,))
    store(c_desc, buffers, acc, m + WHICH * ROWS, n, WHICH, 2)
    tma.store_wait(pendings=0)


@gluon.jit
def warp_specialised_kernel(a_desc, b_desc, c_desc, M, N, K, GROUP_M: gl.constexpr, STAGES: gl.constexpr):
    ROWS: gl.constexpr = a_desc.block_type.shape[0]
    BLOCK_K: gl.constexpr = a_desc.block_type.shape[1]
    BLOCK_N: gl.constexpr = b_desc.block_type.shape[1]
    A_RING: gl.constexpr = [STAGES * CONSUMERS, ROWS, BLOCK_K]
    BUFFERS: gl.constexpr = [2 * CONSUMERS] + c_desc.block_type.shape
    a_ring = gl.allocate_shared_memory(a_desc.dtype, A_RING, a_desc.layout)
    b_ring = gl.allocate_shared_memory(b_desc.dtype, [STAGES, BLOCK_K, BLOCK_N], b_desc.layout)
    buffers = gl.allocate_shared_memory(c_desc.dtype, BUFFERS, c_desc.layout)
    full, empty = ring_barriers(STAGES, CONSUMERS)
    fence_async_shared()
    rings = (a_ring, b_ring, full, empty)
    tile_m, tile_n = tile_of(gl.program_id(0), gl.cdiv(M, ROWS * CONSUMERS), gl.cdiv(N, BLOCK_N), GROUP_M)
    m, n, steps = tile_m * ROWS * CONSUMERS, tile_n * BLOCK_N, gl.cdiv(K, BLOCK_K)
    gl.warp_specialize(
        [
            (_multiply, (c_desc, buffers, rings, m, n, steps, 0)),
            (_multiply, (c_desc, buffers, rings, m, n, steps, 1)),
            (_fetch, (a_desc, b_desc, rings, m, n, steps)),
        ],
        [4, 1],
        [240, 24],
    )


def launch(a, b, out, s):
    (m, k), n = a.shape, b.shape[1]
    rows = s.block_m // CONSUMERS.value
    return warp_specialised_kernel[(s.tiles(out),)](
        descriptor(a, [rows, s.block_k]),
        descriptor(b, [s.block_k, s.block_n]),
        descriptor(out, [rows, SLICE]),
        m,
        n,
        k,
        GROUP_M=s.group_m,
        STAGES=s.stages,
        num_warps=4,
    )
