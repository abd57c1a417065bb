"""Route and order: from tokens to experts, weights, and the row of every pick, in one launch for a few tokens, in two else.

The grid is told T, k and the number of experts, never what the routing came to, so nothing waits for the GPU and a call
may be captured in a graph.
"""

from dataclasses import dataclass

import torch
import triton

from kernels.moe_routing.arguments import check_router, must
from kernels.moe_routing.early import early
from kernels.moe_routing.order import order_kernel
from kernels.moe_routing.router import router_kernel
from kernels.moe_routing.rules import Rule

TILES = (1, 16, 32, 64, 128)


@dataclass
class Routed:
    """All on the device; as reference.Order, with room for the worst case."""

    chosen: torch.Tensor  # int32 (tokens, picks)
    weights: torch.Tensor  # fp32 (tokens, picks)
    tile: int
    offsets: torch.Tensor  # int32 (experts + 1,)
    picks: (
        torch.Tensor
    )  # int32 (tiles * tile,): the pick in each row, EMPTY for padding; beyond the last tile, anything
    place: torch.Tensor  # int32 (tokens, picks): the row of each pick
    tile_expert: torch.Tensor  # int32 (tiles,): EMPTY beyond the last tile
    tile_rows: torch.Tensor  # int32 (tiles,): how many of its rows are real
    rows: torch.Tensor | None = (
        None  # (tiles * tile, hidden): x by row, where it was asked for; padding is anything
    )

    @property
    def tiles(self) -> int:
        """The most that any routing needs."""
        return len(self.tile_expert)


def most_tiles(tokens: int, picks: int, experts: int, tile: int) -> int:
    """An expert's first pick opens a tile, and after that every `tile` more; no expert sees a token twice."""
    every = tokens * picks
    opened = min(experts, every)
    return min(opened + (every - opened) // tile, experts * triton.cdiv(tokens, tile))


class Counters:
    """Who has arrived, by block of tokens; zero between launches. One per stream."""

    def __init__(self, device):
        self.arrived = torch.zeros(0, dtype=torch.int32, device=device)

    def take(self, blocks: int) -> torch.Tensor:
        if len(self.arrived) < blocks:
            self.arrived = torch.zeros(max(blocks, 1024), dtype=torch.int32, device=self.arrived.device)
        return self.arrived


_counters: dict = {}


def counters_of(device) -> Counters:
    stream = torch.cuda.current_stream(device).cuda_stream if device.type == "cuda" else 0
    key = (device, stream)
    if key not in _counters:
        _counters[key] = Counters(device)
    return _counters[key]


def block_tokens(tokens: int, experts: int) -> int:
    """Few enough that blocks fill the GPU and their logits stay in registers; more, and the router is read less often."""
    if tokens <= 2048 or experts > 256:
        return 16
    return 64 if tokens > 8192 and experts <= 128 else 32


def route(x, router, rule: Rule, *, bias=None, shared: int = 0, tile: int = 16, copy: bool = False) -> Routed:
    """Step 1 to 3 of x (tokens, hidden) with router (experts, hidden); `copy` brings the rows of x along."""
    experts = check_router(x, router, rule, bias)
    must(
        isinstance(shared, int) and shared >= 0,
        "shared",
        "a whole number of at least 0",
        shared,
        "count them",
    )
    must(tile in TILES, "tile", f"one of {', '.join(map(str, TILES))}", tile, "pick a listed one")
    (tokens, hidden), picks = x.shape, rule.top_k + shared
    found = _tables(tokens, picks, experts + shared, tile, x.device)
    if not tokens:
        found.offsets.zero_()
        found.rows = x.new_empty(0, hidden) if copy else None
        return found
    block, ep = block_tokens(tokens, experts), max(16, triton.next_power_of_2(experts))
    blocks, xp = triton.cdiv(tokens, block), triton.next_power_of_2(experts + shared)
    logits = torch.empty(tokens, experts, dtype=torch.float32, device=x.device)
    scratch = torch.empty(2, blocks, xp, dtype=torch.int32, device=x.device)
    in_one = blocks == 1 and not copy
    block_e = 16 if tokens <= 512 or experts <= 16 else 64
    shapes = {"XP": xp, "TILE": tile}
    router_kernel[(blocks, triton.cdiv(experts, block_e))](
        x,
        router,
        router if bias is None else bias,
        logits,
        counters_of(x.device).take(blocks),
        found.chosen,
        found.weights,
        *scratch,
        *_of_order(found),
        tokens,
        found.tiles,
        hidden,
        x.stride(0),
        E=experts,
        SHARED=shared,
        **_of_rule(rule),
        HAS_BIAS=bias is not None,
        BLOCK_T=block,
        BLOCK_E=block_e,
        BLOCK_H=128,
        EP=ep,
        KP=triton.next_power_of_2(picks),
        GP=triton.next_power_of_2(rule.groups),
        PP=triton.next_power_of_2(block * picks),
        ORDER=in_one,
        **shapes,
        **early(x),
        num_warps=8 if block * ep > 2048 else 4,
        num_stages=3,
    )
    if not in_one:
        found.rows = torch.empty(found.tiles * tile, hidden, dtype=x.dtype, device=x.device) if copy else None
        _order(x, found, scratch, blocks, block, picks, experts + shared, shapes)
    return found


def _order(
    x, found: Routed, scratch, blocks: int, block: int, picks: int, experts: int, shapes: dict
) -> None:
    order_kernel[(blocks,)](
        x,
        x if found.rows is None else found.rows,
        found.chosen,
        *scratch,
        *_of_order(found),
        x.shape[0],
        found.tiles,
        x.shape[1],
        x.stride(0),
        BLOCK_T=block,
        PICKS=picks,
        X=experts,
        **shapes,
        COPY=found.rows is not None,
        **early(x),
        TOKENS=4,
        COLUMNS=min(1024, triton.next_power_of_2(x.shape[1])),
        num_warps=8,
    )


def _tables(tokens: int, picks: int, experts: int, tile: int, device) -> Routed:
    tiles = most_tiles(tokens, picks, experts, tile)
    sizes = (tokens * picks, experts + 1, tiles * tile, tokens * picks, tiles, tiles)
    chosen, offsets, by_row, place, whose, real = (
        torch.empty(size, dtype=torch.int32, device=device) for size in sizes
    )
    weights = torch.empty(tokens, picks, dtype=torch.float32, device=device)
    return Routed(
        chosen.view(tokens, picks), weights, tile, offsets, by_row, place.view(tokens, picks), whose, real
    )


def _of_order(found: Routed):
    return found.offsets, found.picks, found.place, found.tile_expert, found.tile_rows


def _of_rule(rule: Rule) -> dict:
    return {
        "TOP_K": rule.top_k,
        "SCORES": rule.scores,
        "RENORMALISE": rule.renormalise,
        "GROUPS": rule.groups,
        "KEPT": rule.groups_kept,
        "SCALE": rule.scale,
    }
