"""Route and order, from tokens to experts, weights, and each pair's row, in one launch for a few tokens, else in two
or three.

The grid depends on T, k and the number of experts, never on the routing, so nothing waits for the GPU and a call may
be captured in a graph.
"""

from dataclasses import dataclass
from functools import lru_cache

import torch
import triton

from kernels.counters import arrivals
from kernels.moe_routing.arguments import check_order, check_router
from kernels.moe_routing.cost_traffic import most_tiles
from kernels.moe_routing.order import count_kernel, order_kernel
from kernels.moe_routing.router import choose_few_kernel, choose_kernel, router_kernel, scores_kernel
from kernels.moe_routing.rules import Rule
from kernels.moe_routing.top_k import constants
from kernels.overlap import can_overlap, overlapped

MANY = 132  # programs that fill a GPU
STEP = 128  # columns that the router multiplies at a time
# Beyond this number of tokens and experts, multiplying and choosing are two launches. H200, T = 4096: 97 us for 195
# of 256 experts.
TOKENS_TOGETHER, EXPERTS_TOGETHER = 1024, 64
TOKENS_APART, EXPERTS_APART = 64, 128  # of a program that only multiplies
TOKENS_CHOSEN = 16  # of one that only chooses
COPIED, COPIED_FEW = 512, 128  # columns that a program copies at a time, of many tokens and of few
MOST_AHEAD = 4  # steps of the router that a program holds in registers


@dataclass
class Routed:
    """Hold a reference.Order on the device, with room for the worst case.

    `inv_permuted_copies` has a copy for each program that shares a block of tokens, and `rows` is x by row, if requested.
    """

    topk_ids: torch.Tensor  # int32 (tokens, k)
    topk_weights: torch.Tensor  # fp32 (tokens, k)
    tile: int
    expert_offsets: torch.Tensor  # int32 (experts + 1,)
    sorted_token_ids: torch.Tensor  # int32 (tiles * tile,), the pair in each row, undefined in padding
    inv_permuted_copies: torch.Tensor  # int32 (copies, tokens, k), the row of each pair
    expert_ids: torch.Tensor  # int32 (tiles,), EMPTY beyond the last tile
    tile_rows: torch.Tensor  # int32 (tiles,), how many of its rows are real
    rows: torch.Tensor | None = None  # (tiles * tile, hidden), undefined in padding

    @property
    def inv_permuted_idx(self) -> torch.Tensor:
        """Return int32 (tokens, k)."""
        return self.inv_permuted_copies[0]

    @property
    def tiles(self) -> int:
        """Return the most tiles that any routing needs."""
        return len(self.expert_ids)


@dataclass(frozen=True)
class Cut:
    """Hold how the work is cut. It depends on the sizes alone, never on the GPU, so that every GPU adds in the same order."""

    block: int  # tokens that a program chooses for
    blocks: int
    ordered: int  # tokens whose pairs get rows from one program: one block, or several blocks
    block_x: int  # tokens that a program multiplies, more than it chooses for if these are two launches
    block_e: int  # experts that a program of the router multiplies with
    splits: int  # of the hidden axis
    parts: int  # programs that share the columns of a block when its rows are copied


@lru_cache(maxsize=4096)
def cut(tokens: int, hidden: int, experts: int, copy: bool) -> Cut:
    apart = tokens > TOKENS_TOGETHER and experts > EXPERTS_TOGETHER
    ordered = block_tokens(tokens, experts)
    block = TOKENS_CHOSEN if apart else ordered
    blocks = triton.cdiv(tokens, block)
    block_x = TOKENS_APART if apart else block
    block_e = EXPERTS_APART if apart else block_experts(tokens, experts)
    copied = columns_copied(tokens)
    programs = MANY // 2 if apart else blocks * triton.cdiv(experts, block_e)
    parts = max(1, min(triton.cdiv(hidden, copied), MANY // triton.cdiv(tokens, ordered))) if copy else 1
    return Cut(block, blocks, ordered, block_x, block_e, split_columns(hidden, programs), parts)


def block_experts(tokens: int, experts: int) -> int:
    """Share one block of tokens among the largest possible number of programs. More blocks read x less often."""
    if tokens <= 16:
        return 16
    return min(128 if tokens <= 512 else 64, max(16, triton.next_power_of_2(experts) // 2))


def warps_choosing(tokens: int) -> int:
    return 1 if tokens == 1 else 4


def columns_copied(tokens: int) -> int:
    return COPIED_FEW if tokens <= 16 else COPIED


def block_tokens(tokens: int, experts: int) -> int:
    """Few enough that blocks fill the GPU and their logits stay in registers."""
    if tokens <= 2048 or experts > 256:
        return 16
    return 64 if tokens > 8192 and experts <= 128 else 32


def split_columns(hidden: int, programs: int) -> int:
    """Parts of the hidden axis, a power of two, until there is work for a GPU or a part is two steps long."""
    most = min(MANY // programs, hidden // (2 * STEP))
    return 1 << max(0, most.bit_length() - 1)


def route(
    x,
    router,
    rule: Rule,
    *,
    bias=None,
    shared: int = 0,
    tile: int = 16,
    copy: bool = False,
    early: bool = False,
) -> Routed:
    """Run steps 1 to 3 on x (tokens, hidden) with router (experts, hidden). `copy` copies the rows of x, too.

    `early` loads the router while the launch before runs (kernels/overlap.py): it must be at rest.
    """
    experts = check_router(x, router, rule, bias)
    check_order(shared, tile)
    (tokens, hidden), slots = x.shape, rule.top_k + shared
    if not tokens:
        return _nothing(x, slots, experts + shared, tile, copy)
    how = cut(tokens, hidden, experts, copy)
    found = _tables(tokens, slots, experts + shared, tile, how.parts, x.device)
    shapes = {
        "E": experts,
        "SHARED": shared,
        "TOP_K": rule.top_k,
        "BLOCK_T": how.block,
        "EP": max(16, triton.next_power_of_2(experts)),
        "TILE": tile,
    }
    counts = torch.empty(how.blocks, shapes["EP"], dtype=torch.int32, device=x.device)
    found.rows = torch.empty(found.tiles * tile, hidden, dtype=x.dtype, device=x.device) if copy else None
    _choose(x, router, bias, found, counts, how, shapes | constants(rule) | {"ORDER": how.blocks == 1}, early)
    if how.blocks > 1:
        _order(x, found, counts, how, shapes)
    return found


def order_of(x, topk_ids, topk_weights, experts: int, *, tile: int = 16, copy: bool = False) -> Routed:
    """Run step 3 alone, on topk_ids int32 and topk_weights fp32 (tokens, k) from elsewhere, with no expert twice per token."""
    check_order(0, tile)
    (tokens, hidden), slots = x.shape, topk_ids.shape[1]
    if not tokens:
        return _nothing(x, slots, experts, tile, copy)
    how = cut(tokens, hidden, experts, copy)
    found = _tables(tokens, slots, experts, tile, how.parts, x.device)
    found.topk_ids, found.topk_weights = topk_ids, topk_weights
    found.rows = x.new_empty(found.tiles * tile, hidden) if copy else None
    shapes = {"TOP_K": slots, "BLOCK_T": how.block, "EP": max(16, triton.next_power_of_2(experts))}
    counts = torch.empty(how.blocks, shapes["EP"], dtype=torch.int32, device=x.device)
    count_kernel[(how.blocks,)](topk_ids, counts, tokens, **shapes, num_warps=4)
    _order(x, found, counts, how, shapes | {"E": experts, "SHARED": 0, "TILE": tile})
    return found


def _choose(x, router, bias, found: Routed, counts, how: Cut, shapes: dict, early: bool) -> None:
    (tokens, hidden), experts = x.shape, len(router)
    logits = torch.empty(how.splits, tokens, experts, dtype=torch.float32, device=x.device)
    shares = {"SPLITS": how.splits, "BLOCK_E": how.block_e}
    many = {name: shapes[name] for name in shapes if name not in ("TILE", "ORDER")}
    choice = {"HAS_BIAS": bias is not None, "KP": triton.next_power_of_2(found.topk_ids.shape[1])}
    choice["num_warps"] = 8 if how.block * shapes["EP"] > 2048 else 4
    bias = router if bias is None else bias
    grid = triton.cdiv(tokens, how.block_x), triton.cdiv(experts, how.block_e), how.splits
    few, overlaps = how.blocks == 1 and found.rows is not None, can_overlap(x.device)
    if few or how.block_x > how.block:
        step = STEP if few else STEP // 2
        steps = triton.cdiv(hidden, how.splits * step)
        scores_kernel[grid](
            x,
            router,
            logits,
            tokens,
            hidden,
            x.stride(0),
            E=experts,
            **shares,
            BLOCK_T=how.block_x,
            BLOCK_H=step,
            AHEAD=steps if few and early and overlaps and steps <= MOST_AHEAD else 0,
            EARLY=overlaps,
            num_warps=4,
            num_stages=4,
            **overlapped(overlaps),
        )
    if few:
        block = triton.next_power_of_2(tokens)
        choose_few_kernel[(how.parts,)](
            x,
            bias,
            found.rows,
            logits,
            found.topk_ids,
            found.topk_weights,
            *_of_order(found),
            tokens,
            found.tiles,
            hidden,
            x.stride(0),
            **(many | choice | {"BLOCK_T": block, "num_warps": warps_choosing(block)}),
            SPLITS=how.splits,
            TILE=shapes["TILE"],
            COLUMNS=min(columns_copied(tokens), triton.next_power_of_2(hidden)),
            TOKENS=block,
            EARLY=overlaps,
            **overlapped(overlaps),
        )
        return
    if how.block_x > how.block:
        choose_kernel[(how.blocks,)](
            logits,
            bias,
            found.topk_ids,
            found.topk_weights,
            counts,
            tokens,
            **many,
            **choice,
            SPLITS=how.splits,
            EARLY=overlaps,
            **overlapped(overlaps),
        )
        return
    router_kernel[grid](
        x,
        router,
        bias,
        logits,
        arrivals(x.device, how.blocks),
        found.topk_ids,
        found.topk_weights,
        counts,
        *_of_order(found),
        tokens,
        found.tiles,
        hidden,
        x.stride(0),
        **shapes,
        **shares,
        **choice,
        BLOCK_H=STEP,
        num_stages=3,
    )


def _order(x, found: Routed, counts, how: Cut, shapes: dict) -> None:
    early = can_overlap(x.device)
    order_kernel[(triton.cdiv(x.shape[0], how.ordered), how.parts)](
        x,
        x if found.rows is None else found.rows,
        found.topk_ids,
        counts,
        *_of_order(found),
        x.shape[0],
        found.tiles,
        x.shape[1],
        x.stride(0),
        **(shapes | {"BLOCK_T": how.ordered}),
        COUNTED_T=how.block,
        COPY=found.rows is not None,
        TOKENS=4,
        COLUMNS=min(columns_copied(len(x)), triton.next_power_of_2(x.shape[1])),
        EARLY=early,
        num_warps=8,
        **overlapped(early),
    )


def _nothing(x, slots: int, experts: int, tile: int, copy: bool) -> Routed:
    found = _tables(0, slots, experts, tile, 1, x.device)
    found.expert_offsets.zero_()
    found.rows = x.new_empty(0, x.shape[1]) if copy else None
    return found


def _tables(tokens: int, slots: int, experts: int, tile: int, parts: int, device) -> Routed:
    tiles = most_tiles(tokens, slots, experts, tile)
    sizes = ((tokens, slots), experts + 1, tiles * tile, (parts, tokens, slots), tiles, tiles)
    tables = [torch.empty(size, dtype=torch.int32, device=device) for size in sizes]
    topk_ids, expert_offsets, by_row, inv_permuted_copies, whose, real = tables
    topk_weights = torch.empty(tokens, slots, dtype=torch.float32, device=device)
    return Routed(topk_ids, topk_weights, tile, expert_offsets, by_row, inv_permuted_copies, whose, real)


def _of_order(found: Routed):
    return (
        found.expert_offsets,
        found.sorted_token_ids,
        found.inv_permuted_copies,
        found.expert_ids,
        found.tile_rows,
    )
