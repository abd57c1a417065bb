"""Run the grouped GEMM on Hopper. A warp keeps a ring of tiles full, warpgroups multiply, and no tile waits for
another's end.

The grid is persistent and knows from the routing's own tables how many tiles there are. A tile is 128 or 192 rows of one
expert times 256 rows of its weights, either 128 of gate and the same 128 of up, so that one wide product holds both, or
256 of down. Each warpgroup owns 64 rows, and only lets the ring turn where none of its rows is real, so the time is that
of rows padded to 64. Where most experts fit in 192 rows, their weights pass by once. The producer runs on into the next
tile, of another expert perhaps, while SiLU(gate) x up is still being stored. So the weights never stop streaming, which
few tokens need, and the tensor cores never wait, which many tokens need.
"""

from dataclasses import dataclass

from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.hopper import (
    fence_async_shared,
    mbarrier,
    tma,
    warpgroup_mma,
    warpgroup_mma_wait,
)

from kernels.hopper_tiles import columns, descriptor, store, tile_of
from kernels.moe_routing.routed import Routed
from kernels.ring_barriers import ring_barriers

ROWS = gl.constexpr(64)  # of a warpgroup
HALF = gl.constexpr(128)  # rows of weights fetched at a time
SLICE = gl.constexpr(64)  # columns stored at a time


@dataclass(frozen=True)
class Config:
    consumers: int = 2  # warpgroups that multiply, 64 rows each, 2 or 3
    block_k: int = 64
    stages: int = 4
    buffers: int = 2  # slices on their way out, of each warpgroup
    group: int = 4  # tiles of rows that walk along the columns together
    box: int = 64  # rows fetched at a time, where programs take tiles in turns


@gluon.jit
def weight_rows(expert, tile_n, outputs, GATED: gl.constexpr):
    """Return where the two halves of a tile's weights begin, gate and the same rows of up, or two that are adjacent."""
    if GATED:
        first = expert * 2 * outputs + tile_n * HALF
        second = first + outputs
    else:
        first = expert * outputs + tile_n * 2 * HALF
        second = first + HALF
    return first, second


@gluon.jit
def one_tile(
    y_desc,
    buffers,
    rings,
    count,
    steps,
    tile,
    tile_n,
    rows,
    WHICH: gl.constexpr,
    CONSUMERS: gl.constexpr,
    GATED: gl.constexpr,
    BUFFERS: gl.constexpr,
):
    """Multiply and store a warpgroup's 64 rows of a tile. If no row is real, only the ring turns. Return the number
    of passed stages."""
    x_ring, w_ring, full, empty = rings
    STAGES: gl.constexpr = w_ring.shape[0]
    WIDTH: gl.constexpr = HALF if CONSUMERS == 3 else 2 * HALF  # three warpgroups have fewer registers each
    layout: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [4, 1], [16, WIDTH, 16])
    if rows > WHICH * ROWS:
        acc = gl.zeros([ROWS, 2 * HALF], gl.float32, layout)
        for step in range(steps):
            stage = (count + step) % STAGES
            mbarrier.wait(full.index(stage), (count + step) // STAGES & 1)
            x = x_ring.index(stage * CONSUMERS + WHICH)
            acc = warpgroup_mma(x, w_ring.index(stage).permute((1, 0)), acc, is_async=True)
            acc = warpgroup_mma_wait(1, deps=(acc,))
            mbarrier.arrive(empty.index((count + step + STAGES - 1) % STAGES), pred=step > 0)
        acc = warpgroup_mma_wait(0, deps=(acc,))
        mbarrier.arrive(empty.index((count + steps + STAGES - 1) % STAGES))
        row = (tile * CONSUMERS + WHICH) * ROWS
        if GATED:
            gate, up = columns(acc, 2)
            y = gate / (1.0 + gl.exp(-gate)) * up
            store(y_desc, buffers, y, row, tile_n * HALF, WHICH, BUFFERS)
        else:
            store(y_desc, buffers, acc, row, tile_n * 2 * HALF, WHICH, BUFFERS)
    else:
        for step in range(steps):
            stage = (count + step) % STAGES
            mbarrier.wait(full.index(stage), (count + step) // STAGES & 1)
            mbarrier.arrive(empty.index(stage))
    return count + steps


@gluon.jit
def _produce(descs, rings, tables, sizes, CONSUMERS: gl.constexpr, GATED: gl.constexpr, GROUP: gl.constexpr):
    x_desc, w_desc = descs
    x_ring, w_ring, full, empty = rings
    expert_ids_ptr, tile_rows_ptr = tables
    tiles_m, tiles_n, steps, outputs = sizes
    STAGES: gl.constexpr = w_ring.shape[0]
    BLOCK_K: gl.constexpr = w_ring.shape[2]
    X_BYTES: gl.constexpr = x_desc.block_type.nbytes
    W_BYTES: gl.constexpr = 2 * w_desc.block_type.nbytes
    count = 0
    for t in range(gl.program_id(0), tiles_m * tiles_n, gl.num_programs(0)):
        tile, tile_n = tile_of(t, tiles_m, tiles_n, GROUP)
        expert = gl.load(expert_ids_ptr + tile)
        rows = gl.load(tile_rows_ptr + tile)
        first, second = weight_rows(expert, tile_n, outputs, GATED)
        for step in range(steps):
            stage = count % STAGES
            k = step * BLOCK_K
            mbarrier.wait(empty.index(stage), (count // STAGES & 1) ^ 1)
            ready = full.index(stage)
            for i in gl.static_range(CONSUMERS):
                just = rows > i * ROWS  # i + 1 warpgroups have real rows
                if i + 1 < CONSUMERS:
                    just = just & (rows <= (i + 1) * ROWS)
                mbarrier.expect(ready, W_BYTES + (i + 1) * X_BYTES, pred=just)
            w = w_ring.index(stage)
            tma.async_copy_global_to_shared(w_desc, [first, k], ready, w.slice(0, HALF))
            tma.async_copy_global_to_shared(w_desc, [second, k], ready, w.slice(HALF, HALF))
            for i in gl.static_range(CONSUMERS):
                row = (tile * CONSUMERS + i) * ROWS
                x = x_ring.index(stage * CONSUMERS + i)
                tma.async_copy_global_to_shared(x_desc, [row, k], ready, x, pred=rows > i * ROWS)
            count += 1


@gluon.jit
def _consume(
    y_desc,
    buffers,
    rings,
    tables,
    sizes,
    WHICH: gl.constexpr,
    CONSUMERS: gl.constexpr,
    GATED: gl.constexpr,
    BUFFERS: gl.constexpr,
    GROUP: gl.constexpr,
):
    expert_ids_ptr, tile_rows_ptr = tables
    tiles_m, tiles_n, steps, outputs = sizes
    count = 0
    for t in range(gl.program_id(0), tiles_m * tiles_n, gl.num_programs(0)):
        tile, tile_n = tile_of(t, tiles_m, tiles_n, GROUP)
        rows = gl.load(tile_rows_ptr + tile)
        count = one_tile(
            y_desc, buffers, rings, count, steps, tile, tile_n, rows, WHICH, CONSUMERS, GATED, BUFFERS
        )
    tma.store_wait(pendings=0)


@gluon.jit
def experts_hopper_kernel(
    x_desc,
    w_desc,
    y_desc,
    expert_offsets_end_ptr,
    expert_ids_ptr,
    tile_rows_ptr,
    N,
    K,
    CONSUMERS: gl.constexpr,
    GATED: gl.constexpr,
    GROUP: gl.constexpr,
    STAGES: gl.constexpr,
    BUFFERS: gl.constexpr,
):
    BLOCK_K: gl.constexpr = x_desc.block_type.shape[1]
    COLUMNS: gl.constexpr = HALF if GATED else 2 * HALF
    x_ring = gl.allocate_shared_memory(
        x_desc.dtype, [STAGES * CONSUMERS] + x_desc.block_type.shape, x_desc.layout
    )
    w_ring = gl.allocate_shared_memory(w_desc.dtype, [STAGES, 2 * HALF, BLOCK_K], w_desc.layout)
    buffers = gl.allocate_shared_memory(
        y_desc.dtype, [CONSUMERS * BUFFERS] + y_desc.block_type.shape, y_desc.layout
    )
    full, empty = ring_barriers(STAGES, CONSUMERS)
    fence_async_shared()
    rings = (x_ring, w_ring, full, empty)
    tables = (expert_ids_ptr, tile_rows_ptr)
    tiles_m = gl.load(expert_offsets_end_ptr) // (ROWS * CONSUMERS)
    sizes = (tiles_m, gl.cdiv(N, COLUMNS), gl.cdiv(K, BLOCK_K), N)
    if CONSUMERS == 2:
        gl.warp_specialize(
            [
                (_consume, (y_desc, buffers, rings, tables, sizes, 0, CONSUMERS, GATED, BUFFERS, GROUP)),
                (_consume, (y_desc, buffers, rings, tables, sizes, 1, CONSUMERS, GATED, BUFFERS, GROUP)),
                (_produce, ((x_desc, w_desc), rings, tables, sizes, CONSUMERS, GATED, GROUP)),
            ],
            [4, 1],
            [240, 24],
        )
    else:
        gl.warp_specialize(
            [
                (_consume, (y_desc, buffers, rings, tables, sizes, 0, CONSUMERS, GATED, BUFFERS, GROUP)),
                (_consume, (y_desc, buffers, rings, tables, sizes, 1, CONSUMERS, GATED, BUFFERS, GROUP)),
                (_consume, (y_desc, buffers, rings, tables, sizes, 2, CONSUMERS, GATED, BUFFERS, GROUP)),
                (_produce, ((x_desc, w_desc), rings, tables, sizes, CONSUMERS, GATED, GROUP)),
            ],
            [4, 4, 1],
            [160, 160, 24],
        )


CONFIGS = {128: Config(), 192: Config(consumers=3, stages=3)}  # by rows of a tile


def launch(rows, weight, found: Routed, out, gated: bool, programs: int, config: Config | None = None):
    """Compute out = SiLU(rows @ gate.T) * (rows @ up.T), or rows @ weight.T. Padding rows get garbage."""
    c = config or CONFIGS[found.tile]
    n, k = out.shape[1], rows.shape[1]
    experts_hopper_kernel[(programs,)](
        descriptor(rows, [ROWS.value, c.block_k]),
        descriptor(weight.view(-1, k), [HALF.value, c.block_k]),
        descriptor(out, [ROWS.value, SLICE.value]),
        found.expert_offsets[-1:],
        found.expert_ids,
        found.tile_rows,
        n,
        k,
        CONSUMERS=c.consumers,
        GATED=gated,
        GROUP=c.group,
        STAGES=c.stages,
        BUFFERS=c.buffers,
        num_warps=4,
    )
    return out
