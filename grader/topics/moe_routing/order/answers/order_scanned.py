@triton.jit
def count_pairs(
    topk_ids_ptr, counts_ptr, sorted_token_ids_ptr, expert_ids_ptr, T,
    stride_topk_idst, stride_topk_idsk, stride_sorted_token_idsr, stride_expert_idsi,
    TILES: tl.constexpr, ROWS: tl.constexpr, TOP_K: tl.constexpr, EP: tl.constexpr, BLOCK_T: tl.constexpr,
):
    # my tokens: how many pairs each expert got -> a row of counts
    # and my share of sorted_token_ids and expert_ids, cleared to -1
    block, blocks = tl.program_id(0), tl.num_programs(0)
    t = block * BLOCK_T + tl.arange(0, BLOCK_T)
    offs_e = tl.arange(0, EP)
    counts = tl.zeros((EP,), tl.int32)
    for slot in tl.static_range(TOP_K):
        ids = tl.load(topk_ids_ptr + t * stride_topk_idst + slot * stride_topk_idsk, mask=t < T, other=-1)
        counts += tl.sum((ids[:, None] == offs_e[None, :]).to(tl.int32), 0)
    tl.store(counts_ptr + block * EP + offs_e, counts)
    empty = tl.full((256,), -1, tl.int32)
    for at in range(block * 256, ROWS, blocks * 256):
        row = at + tl.arange(0, 256)
        tl.store(sorted_token_ids_ptr + row * stride_sorted_token_idsr, empty, mask=row < ROWS)
    for at in range(block * 256, TILES, blocks * 256):
        tile = at + tl.arange(0, 256)
        tl.store(expert_ids_ptr + tile * stride_expert_idsi, empty, mask=tile < TILES)


@triton.jit
def scan_counts(
    counts_ptr, before_ptr, expert_offsets_ptr, expert_ids_ptr, E, T, TILE, stride_expert_offsetse, stride_expert_idsi,
    BLOCKS: tl.constexpr, EP: tl.constexpr,
):
    """One program: rows of counts become running sums, with where each expert begins added."""
    offs_e = tl.arange(0, EP)
    total = tl.zeros((EP,), tl.int32)
    for b in range(0, BLOCKS):
        total += tl.load(counts_ptr + b * EP + offs_e)
    tiles = tl.cdiv(total, TILE)
    first = (tl.cumsum(tiles, 0) - tiles) * TILE
    tl.store(expert_offsets_ptr + offs_e * stride_expert_offsetse, first, mask=offs_e < E)
    tl.store(expert_offsets_ptr + E * stride_expert_offsetse, tl.sum(tiles, 0) * TILE)
    for j in range(0, tl.max(tiles, 0)):
        tl.store(expert_ids_ptr + (first // TILE + j) * stride_expert_idsi, offs_e, mask=j < tiles)
    at = first
    for b in range(0, BLOCKS):
        tl.store(before_ptr + b * EP + offs_e, at)
        at += tl.load(counts_ptr + b * EP + offs_e)


@triton.jit
def place_pairs(
    topk_ids_ptr, before_ptr, sorted_token_ids_ptr, inv_permuted_idx_ptr, T,
    stride_topk_idst, stride_topk_idsk, stride_sorted_token_idsr, stride_inv_permuted_idxt, stride_inv_permuted_idxk,
    TOP_K: tl.constexpr, EP: tl.constexpr, BLOCK_T: tl.constexpr,
):
    # all counts -> where experts begin, and how many pairs earlier blocks have -> the row of each of my pairs
    block = tl.program_id(0)
    t = block * BLOCK_T + tl.arange(0, BLOCK_T)
    offs_e = tl.arange(0, EP)
    slots = tl.full((BLOCK_T, EP), -1, tl.int32)  # which slot of its token an expert is
    for slot in tl.static_range(TOP_K):
        ids = tl.load(topk_ids_ptr + t * stride_topk_idst + slot * stride_topk_idsk, mask=t < T, other=-1)
        slots = tl.where(ids[:, None] == offs_e[None, :], slot, slots)
    picked = slots >= 0
    rank = tl.cumsum(picked.to(tl.int32), 0) - picked.to(tl.int32)  # tokens of my block before this one
    row = tl.load(before_ptr + block * EP + offs_e)[None, :] + rank
    tl.store(
        inv_permuted_idx_ptr + t[:, None] * stride_inv_permuted_idxt + slots * stride_inv_permuted_idxk,
        row, mask=picked,
    )
    tl.store(sorted_token_ids_ptr + row * stride_sorted_token_idsr, t[:, None] * TOP_K + slots, mask=picked)


def most_tiles(p):
    """Return the tiles that the worst routing of a case's sizes needs, which tables have room for."""
    pairs = p.T * p.K
    opened = min(p.E, pairs)
    return min(opened + (pairs - opened) // p.TILE, p.E * triton.cdiv(p.T, p.TILE))


def launch(p):
    """Three launches: count, scan, place."""
    block = 64
    blocks = max(1, triton.cdiv(p.T, block))  # offsets are written where there is no token too
    experts = max(16, triton.next_power_of_2(p.E))
    shared = {"TOP_K": p.K, "EP": experts, "BLOCK_T": block}
    tables = {"TILES": most_tiles(p), "ROWS": most_tiles(p) * p.TILE}
    count = {"kernel": count_pairs, "grid": (blocks,), "constexprs": shared | tables, "num_warps": 8}
    warps = 32 if experts >= 256 else 8  # a thread has registers for few experts of 64 tokens
    place = {"kernel": place_pairs, "grid": (blocks,), "constexprs": shared, "num_warps": warps}
    scan = {"kernel": scan_counts, "grid": (1,), "constexprs": {"BLOCKS": blocks, "EP": experts}, "num_warps": 4}
    rows = ((blocks, experts), "i32", 0)
    return {"scratch": {"counts": rows, "before": rows}, "steps": [count, scan, place]}
