"""Run the grouped GEMM for Hopper where products are long. Programs take tiles in turns, an expert's tiles together.

Tiles are unequal, since the last one of an expert has few rows, so a fixed share leaves some programs idle at the
end. So one more warp draws the next tile from a counter, and looks up its expert, while the ring still fills for this
one. Weights and rows are fetched by a warp each, so that neither waits for the other to be asked for. Tiles of one
expert follow each other, down its rows and then along the columns, so its weights are read from memory once. That
pays where a tile multiplies long, and costs more than it gives where K is short (`experts_hopper` shares them out
there).
"""

import torch
from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.hopper import (
    fence_async_shared,
    mbarrier,
    tma,
)

from kernels.counters import arrivals
from kernels.hopper_tiles import descriptor, tile_of
from kernels.moe_routing.experts_hopper import HALF, ROWS, SLICE, Config, one_tile, weight_rows
from kernels.moe_routing.routed import Routed

# By rows of a tile. Of 192 finer steps, H200, 2026-11-23, DeepSeek-like, T = 4096, both matmuls, 7.16 for 7.60 ms.
CONFIGS = {128: Config(), 192: Config(consumers=3, block_k=32, stages=5, buffers=2, box=64)}
TURNS = gl.constexpr(3)  # tiles that are drawn ahead
FACTS = gl.constexpr(4)  # of a turn, as tile of rows, tile of columns, expert, real rows
GROUP = gl.constexpr(16)  # tiles of an expert's rows that walk along the columns together


@gluon.jit
def _draw(turns, counter_ptr, tables, sizes, TILE: gl.constexpr):
    """Draw tiles from the counter until there are none. The last program to draw resets it to zero."""
    slots, given, taken = turns
    expert_offsets_ptr, expert_ids_ptr, tile_rows_ptr = tables
    tiles_m, tiles_n, steps, outputs = sizes
    layout: gl.constexpr = gl.BlockedLayout([1], [32], [1], [0])
    total = tiles_m * tiles_n
    turn = 0
    t = -1
    while t < total:
        t = gl.atomic_add(counter_ptr, 1, sem="relaxed")
        tile = -1
        tile_n = 0
        expert = 0
        rows = 0
        if t < total:
            expert = gl.load(expert_ids_ptr + t // tiles_n)
            first = gl.load(expert_offsets_ptr + expert) // TILE
            count = gl.load(expert_offsets_ptr + expert + 1) // TILE - first
            tile, tile_n = tile_of(t - first * tiles_n, count, tiles_n, GROUP)
            tile += first
            rows = gl.load(tile_rows_ptr + tile)
        slot = turn % TURNS
        mbarrier.wait(taken.index(slot), (turn // TURNS & 1) ^ 1)
        slots.index(slot * FACTS).store(gl.full([1], tile, gl.int32, layout))
        slots.index(slot * FACTS + 1).store(gl.full([1], tile_n, gl.int32, layout))
        slots.index(slot * FACTS + 2).store(gl.full([1], expert, gl.int32, layout))
        slots.index(slot * FACTS + 3).store(gl.full([1], rows, gl.int32, layout))
        mbarrier.arrive(given.index(slot))
        turn += 1
    if t == total + gl.num_programs(0) - 1:
        gl.store(counter_ptr, 0)


@gluon.jit
def _fact(slots, at, WARPS: gl.constexpr):
    layout: gl.constexpr = gl.BlockedLayout([1], [32], [WARPS], [0])
    return gl.max(slots.index(at).load(layout), 0)


@gluon.jit
def _take(turns, turn, WARPS: gl.constexpr):
    """Return (tile, tile_n, expert, rows) of a turn, or a negative tile at the end."""
    slots, given, taken = turns
    slot = turn % TURNS
    mbarrier.wait(given.index(slot), turn // TURNS & 1)
    tile = _fact(slots, slot * FACTS, WARPS)
    tile_n = _fact(slots, slot * FACTS + 1, WARPS)
    expert = _fact(slots, slot * FACTS + 2, WARPS)
    rows = _fact(slots, slot * FACTS + 3, WARPS)
    mbarrier.arrive(taken.index(slot))
    return tile, tile_n, expert, rows


@gluon.jit
def _bring_weights(w_desc, rings, turns, sizes, GATED: gl.constexpr):
    x_ring, w_ring, full, empty = rings
    tiles_m, tiles_n, steps, outputs = sizes
    STAGES: gl.constexpr = w_ring.shape[0]
    BLOCK_K: gl.constexpr = w_ring.shape[2]
    W_BYTES: gl.constexpr = 2 * w_desc.block_type.nbytes
    count = 0
    turn = 0
    tile, tile_n, expert, rows = _take(turns, turn, 1)
    while tile >= 0:
        first, second = weight_rows(expert, tile_n, outputs, GATED)
        for step in range(steps):
            stage = count % STAGES
            k = step * BLOCK_K
            mbarrier.wait(empty.index(stage), (count // STAGES & 1) ^ 1)
            ready = full.index(stage)
            mbarrier.expect(ready, W_BYTES)
            w = w_ring.index(stage)
            tma.async_copy_global_to_shared(w_desc, [first, k], ready, w.slice(0, HALF))
            tma.async_copy_global_to_shared(w_desc, [second, k], ready, w.slice(HALF, HALF))
            count += 1
        turn += 1
        tile, tile_n, expert, rows = _take(turns, turn, 1)


@gluon.jit
def _bring_rows(x_desc, rings, turns, sizes, CONSUMERS: gl.constexpr):
    x_ring, w_ring, full, empty = rings
    tiles_m, tiles_n, steps, outputs = sizes
    STAGES: gl.constexpr = w_ring.shape[0]
    BLOCK_K: gl.constexpr = w_ring.shape[2]
    X_BYTES: gl.constexpr = x_desc.block_type.nbytes
    BOX: gl.constexpr = x_desc.block_type.shape[0]
    BOXES: gl.constexpr = ROWS // BOX  # of a warpgroup
    count = 0
    turn = 0
    tile, tile_n, expert, rows = _take(turns, turn, 1)
    while tile >= 0:
        for step in range(steps):
            stage = count % STAGES
            mbarrier.wait(empty.index(stage), (count // STAGES & 1) ^ 1)
            ready = full.index(stage)
            for i in gl.static_range(CONSUMERS * BOXES):
                just = rows > i * BOX  # i + 1 boxes have real rows
                if i + 1 < CONSUMERS * BOXES:
                    just = just & (rows <= (i + 1) * BOX)
                mbarrier.expect(ready, (i + 1) * X_BYTES, pred=just)
            for i in gl.static_range(CONSUMERS * BOXES):
                row = tile * CONSUMERS * ROWS + i * BOX
                x = x_ring.index(stage * CONSUMERS + i // BOXES).slice(i % BOXES * BOX, BOX)
                tma.async_copy_global_to_shared(x_desc, [row, step * BLOCK_K], ready, x, pred=rows > i * BOX)
            count += 1
        turn += 1
        tile, tile_n, expert, rows = _take(turns, turn, 1)


@gluon.jit
def _consume(
    y_desc,
    buffers,
    rings,
    turns,
    sizes,
    WHICH: gl.constexpr,
    CONSUMERS: gl.constexpr,
    GATED: gl.constexpr,
    BUFFERS: gl.constexpr,
):
    tiles_m, tiles_n, steps, outputs = sizes
    count = 0
    turn = 0
    tile, tile_n, expert, rows = _take(turns, turn, 4)
    while tile >= 0:
        count = one_tile(
            y_desc, buffers, rings, count, steps, tile, tile_n, rows, WHICH, CONSUMERS, GATED, BUFFERS
        )
        turn += 1
        tile, tile_n, expert, rows = _take(turns, turn, 4)
    tma.store_wait(pendings=0)


@gluon.jit(do_not_specialize=["EXPERTS"], do_not_specialize_on_alignment=["counter_ptr"])
def experts_hopper_turns_kernel(
    x_desc,
    w_desc,
    y_desc,
    counter_ptr,
    expert_offsets_ptr,
    expert_ids_ptr,
    tile_rows_ptr,
    EXPERTS,
    N,
    K,
    CONSUMERS: gl.constexpr,
    GATED: gl.constexpr,
    STAGES: gl.constexpr,
    BUFFERS: gl.constexpr,
):
    BLOCK_K: gl.constexpr = x_desc.block_type.shape[1]
    COLUMNS: gl.constexpr = HALF if GATED else 2 * HALF
    TILE: gl.constexpr = ROWS * CONSUMERS
    x_ring = gl.allocate_shared_memory(x_desc.dtype, [STAGES * CONSUMERS, ROWS, BLOCK_K], x_desc.layout)
    w_ring = gl.allocate_shared_memory(w_desc.dtype, [STAGES, 2 * HALF, BLOCK_K], w_desc.layout)
    buffers = gl.allocate_shared_memory(
        y_desc.dtype, [CONSUMERS * BUFFERS] + y_desc.block_type.shape, y_desc.layout
    )
    full = gl.allocate_shared_memory(gl.int64, [STAGES, 1], mbarrier.MBarrierLayout())
    empty = gl.allocate_shared_memory(gl.int64, [STAGES, 1], mbarrier.MBarrierLayout())
    given = gl.allocate_shared_memory(gl.int64, [TURNS, 1], mbarrier.MBarrierLayout())
    taken = gl.allocate_shared_memory(gl.int64, [TURNS, 1], mbarrier.MBarrierLayout())
    slots = gl.allocate_shared_memory(gl.int32, [TURNS * FACTS, 1], gl.SwizzledSharedLayout(1, 1, 1, [0]))
    for i in gl.static_range(STAGES):
        mbarrier.init(full.index(i), count=2)  # a stage's copies have come, of weights and of rows
        mbarrier.init(empty.index(i), count=CONSUMERS)  # every warpgroup has let it go
    for i in gl.static_range(TURNS):
        mbarrier.init(given.index(i), count=1)
        mbarrier.init(
            taken.index(i), count=CONSUMERS + 2
        )  # both the warpgroups and the fetching warps know it
    fence_async_shared()
    rings = (x_ring, w_ring, full, empty)
    turns = (slots, given, taken)
    tables = (expert_offsets_ptr, expert_ids_ptr, tile_rows_ptr)
    sizes = (gl.load(expert_offsets_ptr + EXPERTS) // TILE, gl.cdiv(N, COLUMNS), gl.cdiv(K, BLOCK_K), N)
    if CONSUMERS == 2:
        gl.warp_specialize(
            [
                (_consume, (y_desc, buffers, rings, turns, sizes, 0, CONSUMERS, GATED, BUFFERS)),
                (_consume, (y_desc, buffers, rings, turns, sizes, 1, CONSUMERS, GATED, BUFFERS)),
                (_bring_rows, (x_desc, rings, turns, sizes, CONSUMERS)),
                (_bring_weights, (w_desc, rings, turns, sizes, GATED)),
                (_draw, (turns, counter_ptr, tables, sizes, TILE)),
            ],
            [4, 1, 1, 1],
            [240, 24, 24, 24],
        )
    else:
        gl.warp_specialize(
            [
                (_consume, (y_desc, buffers, rings, turns, sizes, 0, CONSUMERS, GATED, BUFFERS)),
                (_consume, (y_desc, buffers, rings, turns, sizes, 1, CONSUMERS, GATED, BUFFERS)),
                (_consume, (y_desc, buffers, rings, turns, sizes, 2, CONSUMERS, GATED, BUFFERS)),
                (_bring_rows, (x_desc, rings, turns, sizes, CONSUMERS)),
                (_bring_weights, (w_desc, rings, turns, sizes, GATED)),
                (_draw, (turns, counter_ptr, tables, sizes, TILE)),
            ],
            [4, 4, 1, 1, 1],
            [160, 160, 24, 24, 24],
        )


def launch(
    rows, weight, found: Routed, out, gated: bool, programs: int, config: Config | None = None
) -> torch.Tensor:
    """Compute out = SiLU(rows @ gate.T) * (rows @ up.T), or rows @ weight.T. Padding rows get garbage."""
    c = config or CONFIGS[found.tile]
    n, k = out.shape[1], rows.shape[1]
    experts_hopper_turns_kernel[(programs,)](
        descriptor(rows, [c.box, c.block_k]),
        descriptor(weight.view(-1, k), [HALF.value, c.block_k]),
        descriptor(out, [ROWS.value, SLICE.value]),
        arrivals(rows.device, 1),
        found.expert_offsets,
        found.expert_ids,
        found.tile_rows,
        len(found.expert_offsets) - 1,
        n,
        k,
        CONSUMERS=c.consumers,
        GATED=gated,
        STAGES=c.stages,
        BUFFERS=c.buffers,
        num_warps=4,
    )
    return out
