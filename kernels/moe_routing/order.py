"""Which pick stands in which row: histogram, scan and permutation, the same at every run, without waiting for the host.

A pick's row is where its expert begins, plus how many picks of that expert stand before it: in earlier blocks of tokens,
which their histograms tell, and in its own, which comparing all pairs tells. So tokens keep their order within an expert,
and no atomic decides a place. Every table is sized by a bound that T, k and the number of experts give; what the routing
does not need of it is marked as nobody's.
"""

import triton
import triton.language as tl

from kernels.moe_routing.early import begin

EMPTY = tl.constexpr(-1)
TILES_AT_ONCE = tl.constexpr(8)
PICKS_AT_ONCE = tl.constexpr(128)
COMPARED = tl.constexpr(32)


@triton.jit
def counts_of(counts_ptr, block, blocks, XP: tl.constexpr):
    """(all picks of each expert, those of earlier blocks of tokens)."""
    offs_x = tl.arange(0, XP)
    total = tl.zeros((XP,), tl.int32)
    before = tl.zeros((XP,), tl.int32)
    for first in range(0, blocks, 16):
        b = first + tl.arange(0, 16)
        counts = tl.load(
            counts_ptr + b[:, None] * XP + offs_x[None, :], mask=(b < blocks)[:, None], other=0
        )  # (16, XP)
        total += tl.sum(counts, 0)
        before += tl.sum(tl.where((b < block)[:, None], counts, 0), 0)
    return total, before


@triton.jit
def write_tables(
    total, tables, tiles, program, programs, X: tl.constexpr, XP: tl.constexpr, TILE: tl.constexpr
):
    """Offsets, whose each tile is, and which rows are padding; returns the first row of each expert."""
    offsets_ptr, picks_ptr, place_ptr, tile_expert_ptr, tile_rows_ptr = tables
    offs_x = tl.arange(0, XP)
    whole = (total + TILE - 1) // TILE * TILE
    end = tl.cumsum(whole, 0)
    first = end - whole
    if (program == 0) & (tiles > 0):
        tl.store(offsets_ptr + offs_x, first, mask=offs_x < X)
        tl.store(offsets_ptr + X, tl.sum(whole, 0))
    offs_r = tl.arange(0, TILE)
    for at in range(program * TILES_AT_ONCE, tiles, programs * TILES_AT_ONCE):
        tile = at + tl.arange(0, TILES_AT_ONCE)
        row = tile * TILE
        mine = (first[None, :] <= row[:, None]) & (row[:, None] < end[None, :])  # (tiles, XP)
        used = tl.sum(mine.to(tl.int32), 1) > 0
        expert = tl.sum(tl.where(mine, offs_x[None, :], 0), 1)
        last = tl.sum(tl.where(mine, (first + total)[None, :], 0), 1)
        mask_t = tile < tiles
        tl.store(tile_expert_ptr + tile, tl.where(used, expert, EMPTY), mask=mask_t)
        tl.store(tile_rows_ptr + tile, tl.where(used, tl.minimum(last - row, TILE), 0), mask=mask_t)
        rows = row[:, None] + offs_r[None, :]
        padding = (mask_t & used)[:, None] & (rows >= last[:, None])
        tl.store(picks_ptr + rows, tl.zeros((TILES_AT_ONCE, TILE), tl.int32) + EMPTY, mask=padding)
    return first


@triton.jit
def place_picks(chosen_ptr, starts_ptr, picks_ptr, place_ptr, first, last, says):
    """Rows of the picks first .. last of one block; `starts` holds the row of each expert's first one among them.

    Of several programs that place the same picks, one `says` which pick stands in a row.
    """
    offs_i = tl.arange(0, PICKS_AT_ONCE)
    offs_j = tl.arange(0, COMPARED)
    for at in range(first, last, PICKS_AT_ONCE):
        i = at + offs_i
        mask_i = i < last
        expert = tl.load(chosen_ptr + i, mask=mask_i, other=0)
        row = tl.load(starts_ptr + expert, mask=mask_i, other=0)
        for other in range(first, tl.minimum(at + PICKS_AT_ONCE, last), COMPARED):
            j = other + offs_j
            theirs = tl.load(chosen_ptr + j, mask=j < last, other=EMPTY)
            earlier = (theirs[None, :] == expert[:, None]) & (j[None, :] < i[:, None])
            row += tl.sum(earlier.to(tl.int32), 1)
        tl.store(place_ptr + i, row, mask=mask_i)
        tl.store(picks_ptr + row, i, mask=mask_i & says)


@triton.jit
def order_block(
    chosen_ptr,
    starts_ptr,
    tables,
    total,
    before,
    tiles,
    block,
    blocks,
    part,
    first,
    last,
    X: tl.constexpr,
    XP: tl.constexpr,
    TILE: tl.constexpr,
):
    """All that one program does for its picks and for its share of the tiles; part 0 of a block writes the tables."""
    begins = write_tables(total, tables, tl.where(part == 0, tiles, 0), block, blocks, X, XP, TILE)
    starts_ptr += (part * blocks + block) * XP
    tl.store(starts_ptr + tl.arange(0, XP), begins + before)
    tl.debug_barrier()  # what was written is looked up by other threads
    place_picks(chosen_ptr, starts_ptr, tables[1], tables[2], first, last, part == 0)


@triton.jit
def copy_rows(
    x_ptr,
    rows_ptr,
    place_ptr,
    first,
    last,
    part,
    parts,
    H,
    stride_xm,
    PICKS: tl.constexpr,
    TOKENS: tl.constexpr,
    COLUMNS: tl.constexpr,
):
    """Some columns of the tokens first .. last to their rows: each is read once and written for every pick."""
    offs_h = tl.arange(0, COLUMNS)
    for at in range(first, last, TOKENS):
        t = at + tl.arange(0, TOKENS)
        mask_t = t < last
        for h in range(part * COLUMNS, H, parts * COLUMNS):
            mask = mask_t[:, None] & (h + offs_h < H)[None, :]
            x = tl.load(
                x_ptr + t.to(tl.int64)[:, None] * stride_xm + (h + offs_h)[None, :], mask=mask, other=0.0
            )
            for slot in tl.static_range(PICKS):
                row = tl.load(place_ptr + t * PICKS + slot, mask=mask_t, other=0).to(tl.int64)
                tl.store(rows_ptr + row[:, None] * H + (h + offs_h)[None, :], x, mask=mask)


@triton.jit(do_not_specialize=["T", "tiles"])
def order_kernel(
    x_ptr,
    rows_ptr,
    chosen_ptr,
    counts_ptr,
    starts_ptr,
    offsets_ptr,
    picks_ptr,
    place_ptr,
    tile_expert_ptr,
    tile_rows_ptr,
    T,
    tiles,
    H,
    stride_xm,
    BLOCK_T: tl.constexpr,
    PICKS: tl.constexpr,
    X: tl.constexpr,
    XP: tl.constexpr,
    TILE: tl.constexpr,
    COPY: tl.constexpr,
    TOKENS: tl.constexpr,
    COLUMNS: tl.constexpr,
    EARLY: tl.constexpr,
):
    begin(EARLY)
    block, blocks = tl.program_id(0), tl.num_programs(0)
    part, parts = tl.program_id(1), tl.num_programs(1)
    place_ptr += part * T * PICKS  # a table of its own: what another program writes it may not read
    total, before = counts_of(counts_ptr, block, blocks, XP)
    tables = (offsets_ptr, picks_ptr, place_ptr, tile_expert_ptr, tile_rows_ptr)
    first = block * BLOCK_T
    last = tl.minimum(first + BLOCK_T, T)
    order_block(
        chosen_ptr,
        starts_ptr,
        tables,
        total,
        before,
        tiles,
        block,
        blocks,
        part,
        first * PICKS,
        last * PICKS,
        X,
        XP,
        TILE,
    )
    if COPY:
        tl.debug_barrier()
        copy_rows(x_ptr, rows_ptr, place_ptr, first, last, part, parts, H, stride_xm, PICKS, TOKENS, COLUMNS)
