"""Compute router scores, top-k and the block's histogram in one launch, and for a few tokens the whole order.

Programs share a block of tokens, each multiplying some of its columns with some experts' rows of the router. The last
to arrive chooses for the block. It adds the partial sums of the column splits, always in one order, counts the pairs,
and, if there is only one block, also gives every pair its row. With many tokens the matmul needs large tiles, which
read the router seldom, and the choice needs small blocks, whose logits stay in registers, so each is a launch of its
own.
"""

import triton
import triton.language as tl

from kernels.moe_routing.order import copy_rows, first_rows, place_pairs
from kernels.moe_routing.top_k import NO_SLOT, choose, with_shared
from kernels.overlap import let_next_begin, wait_for_last


@triton.jit
def scores_of(
    x_ptr,
    router_ptr,
    T,
    H,
    stride_xm,
    E: tl.constexpr,
    SPLITS: tl.constexpr,
    BLOCK_T: tl.constexpr,
    BLOCK_E: tl.constexpr,
    BLOCK_H: tl.constexpr,
    AHEAD: tl.constexpr,
):
    """Return (BLOCK_T, BLOCK_E) of this split's columns of x times the router's, whose rows are contiguous.

    AHEAD steps of the router are loaded before the launch before this one has ended.
    """
    offs_t = tl.program_id(0) * BLOCK_T + tl.arange(0, BLOCK_T)
    offs_e = tl.program_id(1) * BLOCK_E + tl.arange(0, BLOCK_E)
    offs_h = tl.arange(0, BLOCK_H)
    x_ptrs = x_ptr + offs_t.to(tl.int64)[:, None] * stride_xm + offs_h[None, :]
    r_ptrs = router_ptr + offs_e[:, None] * H + offs_h[None, :]
    acc = tl.zeros((BLOCK_T, BLOCK_E), tl.float32)
    each = tl.cdiv(H, SPLITS * BLOCK_H) * BLOCK_H
    begin_h = tl.program_id(2) * each
    behind = tl.minimum(begin_h + each, H)
    if AHEAD:
        fetched = ()
        for i in tl.static_range(AHEAD):
            mask_h = (offs_h < behind - begin_h - i * BLOCK_H)[None, :]
            at = begin_h + i * BLOCK_H
            fetched += (tl.load(r_ptrs + at, mask=(offs_e < E)[:, None] & mask_h, other=0.0),)
        wait_for_last()
        for i in tl.static_range(AHEAD):
            mask_h = (offs_h < behind - begin_h - i * BLOCK_H)[None, :]
            at = begin_h + i * BLOCK_H
            x = tl.load(x_ptrs + at, mask=(offs_t < T)[:, None] & mask_h, other=0.0)
            acc = tl.dot(x, fetched[i].T, acc)
        begin_h += AHEAD * BLOCK_H
    for h in range(begin_h, behind, BLOCK_H):
        mask_h = (offs_h < H - h)[None, :]
        x = tl.load(x_ptrs + h, mask=(offs_t < T)[:, None] & mask_h, other=0.0)  # (BLOCK_T, BLOCK_H)
        r = tl.load(r_ptrs + h, mask=(offs_e < E)[:, None] & mask_h, other=0.0)  # (BLOCK_E, BLOCK_H)
        acc = tl.dot(x, r.T, acc)
    return acc


@triton.jit
def sums_of(logits_ptr, offs_t, offs_e, mask, T, E: tl.constexpr, SPLITS: tl.constexpr):
    """The logits of a block: what the splits left, added in their order."""
    logits = tl.zeros((offs_t.shape[0], offs_e.shape[0]), tl.float32)
    for split in tl.static_range(SPLITS):
        row = (split * T + offs_t).to(tl.int64)[:, None]
        logits += tl.load(logits_ptr + row * E + offs_e[None, :], mask=mask, other=0.0)
    return logits


@triton.jit
def store_scores(
    acc, logits_ptr, T, E: tl.constexpr, SPLITS: tl.constexpr, BLOCK_T: tl.constexpr, BLOCK_E: tl.constexpr
):
    """acc (BLOCK_T, BLOCK_E) to where `sums_of` looks for this split."""
    offs_t = tl.program_id(0) * BLOCK_T + tl.arange(0, BLOCK_T)
    offs_e = tl.program_id(1) * BLOCK_E + tl.arange(0, BLOCK_E)
    row = (tl.program_id(2) * T + offs_t).to(tl.int64)[:, None]
    tl.store(logits_ptr + row * E + offs_e[None, :], acc, mask=(offs_t < T)[:, None] & (offs_e < E)[None, :])


@triton.jit
def choose_block(
    logits_ptr,
    bias_ptr,
    topk_ids_ptr,
    topk_weights_ptr,
    block,
    T,
    E: tl.constexpr,
    SHARED: tl.constexpr,
    TOP_K: tl.constexpr,
    SCORES: tl.constexpr,
    RENORMALISE: tl.constexpr,
    GROUPS: tl.constexpr,
    KEPT: tl.constexpr,
    SCALE: tl.constexpr,
    HAS_BIAS: tl.constexpr,
    SPLITS: tl.constexpr,
    BLOCK_T: tl.constexpr,
    EP: tl.constexpr,
    KP: tl.constexpr,
    GP: tl.constexpr,
):
    """Choose and write the experts and weights of a block of tokens. Return (slots, how often each expert was
    picked)."""
    SLOTS: tl.constexpr = TOP_K + SHARED
    offs_t = block * BLOCK_T + tl.arange(0, BLOCK_T)
    mask_t = (offs_t < T)[:, None]
    offs_e = tl.arange(0, EP)
    offs_k = tl.arange(0, KP)
    logits = sums_of(
        logits_ptr, offs_t, offs_e, mask_t & (offs_e < E)[None, :], T, E, SPLITS
    )  # (BLOCK_T, EP)
    topk_ids, topk_weights, slots = choose(
        logits, bias_ptr, E, TOP_K, SCORES, RENORMALISE, GROUPS, KEPT, SCALE, HAS_BIAS, EP, KP, GP
    )
    slots = tl.where(mask_t, slots, NO_SLOT)
    topk_ids, topk_weights = with_shared(topk_ids, topk_weights, offs_k[None, :], E, TOP_K)
    at = offs_t[:, None] * SLOTS + offs_k[None, :]
    mask = mask_t & (offs_k < SLOTS)[None, :]
    tl.store(topk_ids_ptr + at, topk_ids, mask=mask)
    tl.store(topk_weights_ptr + at, topk_weights, mask=mask)
    return slots, tl.sum((slots != NO_SLOT).to(tl.int32), 0)


@triton.jit(do_not_specialize=["T"])
def scores_kernel(
    x_ptr,
    router_ptr,
    logits_ptr,
    T,
    H,
    stride_xm,
    E: tl.constexpr,
    SPLITS: tl.constexpr,
    BLOCK_T: tl.constexpr,
    BLOCK_E: tl.constexpr,
    BLOCK_H: tl.constexpr,
    AHEAD: tl.constexpr,
    EARLY: tl.constexpr,
):
    if EARLY:
        let_next_begin()
        if not AHEAD:
            wait_for_last()
    acc = scores_of(x_ptr, router_ptr, T, H, stride_xm, E, SPLITS, BLOCK_T, BLOCK_E, BLOCK_H, AHEAD)
    store_scores(acc, logits_ptr, T, E, SPLITS, BLOCK_T, BLOCK_E)


@triton.jit(do_not_specialize=["T"])
def choose_kernel(
    logits_ptr,
    bias_ptr,
    topk_ids_ptr,
    topk_weights_ptr,
    counts_ptr,
    T,
    E: tl.constexpr,
    SHARED: tl.constexpr,
    TOP_K: tl.constexpr,
    SCORES: tl.constexpr,
    RENORMALISE: tl.constexpr,
    GROUPS: tl.constexpr,
    KEPT: tl.constexpr,
    SCALE: tl.constexpr,
    HAS_BIAS: tl.constexpr,
    SPLITS: tl.constexpr,
    BLOCK_T: tl.constexpr,
    EP: tl.constexpr,
    KP: tl.constexpr,
    GP: tl.constexpr,
    EARLY: tl.constexpr,
):
    if EARLY:
        let_next_begin()
        wait_for_last()
    block = tl.program_id(0)
    _, counts = choose_block(
        logits_ptr,
        bias_ptr,
        topk_ids_ptr,
        topk_weights_ptr,
        block,
        T,
        E,
        SHARED,
        TOP_K,
        SCORES,
        RENORMALISE,
        GROUPS,
        KEPT,
        SCALE,
        HAS_BIAS,
        SPLITS,
        BLOCK_T,
        EP,
        KP,
        GP,
    )
    tl.store(counts_ptr + block * EP + tl.arange(0, EP), counts)


@triton.jit(do_not_specialize=["T", "tiles"])
def choose_few_kernel(
    x_ptr,
    bias_ptr,
    rows_ptr,
    logits_ptr,
    topk_ids_ptr,
    topk_weights_ptr,
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
    SCORES: tl.constexpr,
    RENORMALISE: tl.constexpr,
    GROUPS: tl.constexpr,
    KEPT: tl.constexpr,
    SCALE: tl.constexpr,
    HAS_BIAS: tl.constexpr,
    SPLITS: tl.constexpr,
    BLOCK_T: tl.constexpr,
    EP: tl.constexpr,
    KP: tl.constexpr,
    GP: tl.constexpr,
    TILE: tl.constexpr,
    COLUMNS: tl.constexpr,
    TOKENS: tl.constexpr,
    EARLY: tl.constexpr,
):
    """Choose for one block of tokens, order, and copy some columns. Each program makes the same choice, because waiting
    for another would take longer, and writes a table of rows of its own."""
    if EARLY:
        let_next_begin()
        wait_for_last()
    part, parts = tl.program_id(0), tl.num_programs(0)
    SLOTS: tl.constexpr = TOP_K + SHARED
    inv_permuted_idx_ptr += part * T * SLOTS
    tables = (expert_offsets_ptr, sorted_token_ids_ptr, inv_permuted_idx_ptr, expert_ids_ptr, tile_rows_ptr)
    offs_t = tl.arange(0, BLOCK_T)
    slots, counts = choose_block(
        logits_ptr, bias_ptr, topk_ids_ptr, topk_weights_ptr, 0, T, E, SHARED, TOP_K, SCORES, RENORMALISE, GROUPS, KEPT, SCALE,
        HAS_BIAS, SPLITS, BLOCK_T, EP, KP, GP,
    )  # fmt: skip
    first, after = first_rows(
        counts, tables, T, tiles, part, parts, 0, E, SHARED, TILE
    )  # a share of the tiles each
    place_pairs(slots, first, after, tables, T, offs_t, part, SHARED, TOP_K, TILE)
    tl.debug_barrier()  # other threads look the rows up after the write
    copy_rows(x_ptr, rows_ptr, inv_permuted_idx_ptr, 0, T, part, parts, H, stride_xm, SLOTS, TOKENS, COLUMNS)


@triton.jit(do_not_specialize=["T", "tiles"])
def router_kernel(
    x_ptr,
    router_ptr,
    bias_ptr,
    logits_ptr,
    arrived_ptr,
    topk_ids_ptr,
    topk_weights_ptr,
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
    SCORES: tl.constexpr,
    RENORMALISE: tl.constexpr,
    GROUPS: tl.constexpr,
    KEPT: tl.constexpr,
    SCALE: tl.constexpr,
    HAS_BIAS: tl.constexpr,
    SPLITS: tl.constexpr,
    BLOCK_T: tl.constexpr,
    BLOCK_E: tl.constexpr,
    BLOCK_H: tl.constexpr,
    EP: tl.constexpr,
    KP: tl.constexpr,
    GP: tl.constexpr,
    TILE: tl.constexpr,
    ORDER: tl.constexpr,
):
    block = tl.program_id(0)
    acc = scores_of(x_ptr, router_ptr, T, H, stride_xm, E, SPLITS, BLOCK_T, BLOCK_E, BLOCK_H, 0)
    store_scores(acc, logits_ptr, T, E, SPLITS, BLOCK_T, BLOCK_E)
    last = tl.num_programs(1) * SPLITS - 1
    tl.debug_barrier()  # all threads have written before one thread reports it
    if tl.atomic_add(arrived_ptr + block, 1, sem="acq_rel") != last:
        return
    tl.store(arrived_ptr + block, 0)  # ready for the next launch
    slots, counts = choose_block(
        logits_ptr,
        bias_ptr,
        topk_ids_ptr,
        topk_weights_ptr,
        block,
        T,
        E,
        SHARED,
        TOP_K,
        SCORES,
        RENORMALISE,
        GROUPS,
        KEPT,
        SCALE,
        HAS_BIAS,
        SPLITS,
        BLOCK_T,
        EP,
        KP,
        GP,
    )
    if ORDER:
        offs_t = block * BLOCK_T + tl.arange(0, BLOCK_T)
        tables = (
            expert_offsets_ptr,
            sorted_token_ids_ptr,
            inv_permuted_idx_ptr,
            expert_ids_ptr,
            tile_rows_ptr,
        )
        first, after = first_rows(counts, tables, T, tiles, 0, 1, 0, E, SHARED, TILE)
        place_pairs(slots, first, after, tables, T, offs_t, 0, SHARED, TOP_K, TILE)
    else:
        tl.store(counts_ptr + block * EP + tl.arange(0, EP), counts)
