"""Order (token, expert) pairs into rows by histogram, scan and permutation, the same at every run, without the host.

A pair's row is its expert's first row, plus the number of earlier tokens that picked that expert: in earlier blocks
of tokens, from their histograms, and in its own, from a scan down the block for all experts together. So tokens keep
their order within an expert, and no atomic decides a row. Shared experts see every token, so their rows need no
counting. Every table is sized by a bound that T, k and the number of experts give. Tiles that a routing does not need
are marked as empty.
"""

import triton
import triton.language as tl

from kernels.moe_routing.top_k import NO_SLOT
from kernels.overlap import let_next_begin, wait_for_last

EMPTY = tl.constexpr(-1)
CLEARED = tl.constexpr(1024)  # tables' entries at a time
COUNTED = tl.constexpr(32)  # blocks' histograms at a time


@triton.jit
def counts_of(counts_ptr, block, blocks, EP: tl.constexpr):
    """Return (all pairs of each expert, its pairs in earlier blocks of tokens)."""
    offs_e = tl.arange(0, EP)
    total = tl.zeros((COUNTED, EP), tl.int32)
    before = tl.zeros((COUNTED, EP), tl.int32)
    for first in range(0, blocks, COUNTED):
        b = first + tl.arange(0, COUNTED)
        at = counts_ptr + b[:, None] * EP + offs_e[None, :]
        counts = tl.load(at, mask=(b < blocks)[:, None], other=0)  # (COUNTED, EP)
        total += counts
        before += tl.where((b < block)[:, None], counts, 0)
    return tl.sum(total, 0), tl.sum(before, 0)


@triton.jit
def slots_of(topk_ids_ptr, t, T, TOP_K: tl.constexpr, SLOTS: tl.constexpr, EP: tl.constexpr):
    """Return (tokens, EP), the index of an expert among its token's choices, or NO_SLOT."""
    slots = tl.zeros((t.shape[0], EP), tl.int32) + NO_SLOT
    for slot in tl.static_range(TOP_K):
        topk_ids = tl.load(topk_ids_ptr + t * SLOTS + slot, mask=t < T, other=NO_SLOT)
        slots = tl.where(tl.arange(0, EP)[None, :] == topk_ids[:, None], slot, slots)
    return slots


@triton.jit(do_not_specialize=["T"])
def count_kernel(topk_ids_ptr, counts_ptr, T, TOP_K: tl.constexpr, BLOCK_T: tl.constexpr, EP: tl.constexpr):
    """Count how often each expert is picked in each block of tokens, if no router has counted."""
    block = tl.program_id(0)
    slots = slots_of(topk_ids_ptr, block * BLOCK_T + tl.arange(0, BLOCK_T), T, TOP_K, TOP_K, EP)
    counts = tl.sum((slots != NO_SLOT).to(tl.int32), 0)  # (EP,)
    tl.store(counts_ptr + block * EP + tl.arange(0, EP), counts)


@triton.jit
def write_tiles(
    first, total, tables, T, tiles, block, blocks, E: tl.constexpr, SHARED: tl.constexpr, TILE: tl.constexpr
):
    """Write each expert's first row, each tile's expert, and its number of real rows. Programs take turns at the
    tiles."""
    expert_offsets_ptr, _, _, expert_ids_ptr, tile_rows_ptr = tables
    offs_e = tl.arange(0, first.shape[0])
    after = tl.sum((total + TILE - 1) // TILE * TILE, 0)
    each = tl.cdiv(T, TILE)  # the most tiles of an expert, and those of a shared one
    if block == 0:
        tl.store(expert_offsets_ptr + offs_e, first, mask=offs_e < E)
        for s in tl.static_range(SHARED + 1):
            tl.store(expert_offsets_ptr + E + s, after + s * each * TILE)
    for j in range(block, each, blocks):
        tile = first // TILE + j
        mask = j * TILE < total
        tl.store(expert_ids_ptr + tile, offs_e, mask=mask)
        tl.store(tile_rows_ptr + tile, tl.minimum(total - j * TILE, TILE), mask=mask)
        for s in tl.static_range(SHARED):
            tl.store(expert_ids_ptr + after // TILE + s * each + j, E + s)
            tl.store(tile_rows_ptr + after // TILE + s * each + j, tl.minimum(T - j * TILE, TILE))
    used = after // TILE + SHARED * each
    for at in range(used + block * CLEARED, tiles, blocks * CLEARED):
        tile = at + tl.arange(0, CLEARED)
        tl.store(expert_ids_ptr + tile, tl.zeros((CLEARED,), tl.int32) + EMPTY, mask=tile < tiles)
        tl.store(tile_rows_ptr + tile, tl.zeros((CLEARED,), tl.int32), mask=tile < tiles)


@triton.jit
def first_rows(
    total,
    tables,
    T,
    tiles,
    block,
    blocks,
    part,
    E: tl.constexpr,
    SHARED: tl.constexpr,
    TILE: tl.constexpr,
):
    """Return (each expert's first row, the shared ones' first row). Part 0 of a block's programs writes the tiles."""
    whole = (total + TILE - 1) // TILE * TILE
    first = tl.cumsum(whole, 0) - whole
    if part == 0:
        write_tiles(first, total, tables, T, tiles, block, blocks, E, SHARED, TILE)
    return first, tl.sum(whole, 0)


@triton.jit
def place_pairs(
    slots,
    begin,
    after,
    tables,
    T,
    t,
    part,
    SHARED: tl.constexpr,
    TOP_K: tl.constexpr,
    TILE: tl.constexpr,
):
    """Give rows to the pairs `slots` of the tokens t, from each expert's next row `begin` on."""
    SLOTS: tl.constexpr = TOP_K + SHARED
    _, sorted_token_ids_ptr, inv_permuted_idx_ptr, _, _ = tables
    picked = slots != NO_SLOT
    rank = tl.cumsum(picked.to(tl.int32), 0) - picked.to(tl.int32)
    row = begin[None, :] + rank
    pair = t[:, None] * SLOTS + slots
    tl.store(inv_permuted_idx_ptr + pair, row, mask=picked)
    tl.store(sorted_token_ids_ptr + row, pair, mask=picked & (part == 0))
    for s in tl.static_range(SHARED):
        row_s = after + s * tl.cdiv(T, TILE) * TILE + t
        tl.store(inv_permuted_idx_ptr + t * SLOTS + TOP_K + s, row_s, mask=t < T)
        tl.store(sorted_token_ids_ptr + row_s, t * SLOTS + TOP_K + s, mask=(t < T) & (part == 0))


@triton.jit
def copy_rows(
    x_ptr,
    rows_ptr,
    inv_permuted_idx_ptr,
    first,
    last,
    part,
    parts,
    H,
    stride_xm,
    SLOTS: tl.constexpr,
    TOKENS: tl.constexpr,
    COLUMNS: tl.constexpr,
):
    """Copy some columns of the tokens first .. last to their rows. Each is read once and written for every pair."""
    offs_h = tl.arange(0, COLUMNS)
    for at in range(first, last, TOKENS):
        t = at + tl.arange(0, TOKENS)
        mask_t = t < last
        for h in range(part * COLUMNS, H, parts * COLUMNS):
            mask = mask_t[:, None] & (h + offs_h < H)[None, :]
            x_ptrs = x_ptr + t.to(tl.int64)[:, None] * stride_xm + (h + offs_h)[None, :]
            x = tl.load(x_ptrs, mask=mask, other=0.0)  # (TOKENS, COLUMNS)
            for slot in tl.static_range(SLOTS):
                row = tl.load(inv_permuted_idx_ptr + t * SLOTS + slot, mask=mask_t, other=0).to(tl.int64)
                tl.store(rows_ptr + row[:, None] * H + (h + offs_h)[None, :], x, mask=mask)


@triton.jit(do_not_specialize=["T", "tiles"])
def order_kernel(
    x_ptr,
    rows_ptr,
    topk_ids_ptr,
    counts_ptr,
    expert_offsets_ptr,
    sorted_token_ids_ptr,
    inv_permuted_idx_ptr,
    expert_ids_ptr,
    tile_rows_ptr,
    T,
    tiles,
    H,
    stride_xm,
    E: tl.constexpr,
    SHARED: tl.constexpr,
    TOP_K: tl.constexpr,
    BLOCK_T: tl.constexpr,
    COUNTED_T: tl.constexpr,
    EP: tl.constexpr,
    TILE: tl.constexpr,
    COPY: tl.constexpr,
    TOKENS: tl.constexpr,
    COLUMNS: tl.constexpr,
    EARLY: tl.constexpr,
):
    if EARLY:
        let_next_begin()
        wait_for_last()
    block, blocks = tl.program_id(0), tl.num_programs(0)
    part, parts = tl.program_id(1), tl.num_programs(1)
    SLOTS: tl.constexpr = TOP_K + SHARED
    inv_permuted_idx_ptr += (
        part * T * SLOTS
    )  # a table of its own, because a program may not read another's writes
    tables = (expert_offsets_ptr, sorted_token_ids_ptr, inv_permuted_idx_ptr, expert_ids_ptr, tile_rows_ptr)
    total, before = counts_of(counts_ptr, block * (BLOCK_T // COUNTED_T), tl.cdiv(T, COUNTED_T), EP)
    first, after = first_rows(total, tables, T, tiles, block, blocks, part, E, SHARED, TILE)
    begin = first + before
    for i in tl.static_range(BLOCK_T // COUNTED_T):
        t = block * BLOCK_T + i * COUNTED_T + tl.arange(0, COUNTED_T)
        slots = slots_of(topk_ids_ptr, t, T, TOP_K, SLOTS, EP)
        place_pairs(slots, begin, after, tables, T, t, part, SHARED, TOP_K, TILE)
        begin += tl.sum((slots != NO_SLOT).to(tl.int32), 0)
    if COPY:
        tl.debug_barrier()  # other threads look it up after the write
        last = tl.minimum(block * BLOCK_T + BLOCK_T, T)
        copy_rows(
            x_ptr,
            rows_ptr,
            inv_permuted_idx_ptr,
            block * BLOCK_T,
            last,
            part,
            parts,
            H,
            stride_xm,
            SLOTS,
            TOKENS,
            COLUMNS,
        )
