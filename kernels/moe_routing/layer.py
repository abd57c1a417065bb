"""Run the whole layer, route, order, gate and up, down, combine, in three to six launches by the number of tokens.

    tokens      launches
    1           scores | top-k, gate and up | down, which combines as it goes
    2 to 16     router, which orders too | gate and up | down | combine
    more        router | order | gate and up | down | combine

Of more than 1024 tokens with more than 64 experts the router multiplies in one launch and chooses in the next. If an
expert usually gets more than 32 rows and the GPU is a Hopper, the order brings the rows of x along, so that the copy
engine can fetch whole tiles. Otherwise the experts' kernel gathers them by itself.

Two attempts didn't pay on an H200, 2026-11-23, with Qwen3-like sizes. Launches that begin before the launch ahead has
ended took 38 us instead of 34 at T = 1, 316 instead of 320 at T = 256, and 864 instead of 797 at T = 4096. Asking the L2
for weights while the router chooses took 323 us instead of 320 at T = 256.
"""

import math

import torch

from kernels.moe_routing import experts as portable
from kernels.moe_routing.arguments import Experts, check_layer
from kernels.moe_routing.combine import combine
from kernels.moe_routing.narrow import Narrow, narrow_experts
from kernels.moe_routing.one_token import one_token
from kernels.moe_routing.routed import Routed, route
from kernels.moe_routing.rules import Rule
from kernels.replays import form

WIDEST = 128
# rows of tiles that the copy engine fetches faster. H200, 2026-11-22, Mixtral, T = 256: 465 us, and 549 in tiles of 64
FETCHED = 64
LONG = 2048  # columns from which tiles in turns pay (H200, 2026-11-23, T = 4096, both products of 2048: 633 us, not 661)


def layer(x, router, experts: Experts | Narrow, rule: Rule, *, bias=None, out=None) -> torch.Tensor:
    """Compute out (tokens, hidden) of x (tokens, hidden), with the router (experts, hidden) and the weights that it
    chooses from.

    Shared experts add their own share to every token. Every run gives the same bits, and nothing waits for the GPU.
    """
    key = form(x), form(router), form(bias), form(out), rule
    whole = isinstance(experts, Experts)
    ready = whole and experts.replays.get(key)
    if not ready:
        check_layer(x, router, experts, rule, bias, out)
    if out is None:
        out = torch.empty_like(x, memory_format=torch.contiguous_format)
    if not whole:
        return _run(x, router, experts, rule, bias, out)
    given = (x, router, experts.gate_up, experts.down, out) + (() if bias is None else (bias,))
    if ready and ready(*given):
        return out
    with experts.replays.recording(key, *given):
        return _run(x, router, experts, rule, bias, out)


def _run(x, router, experts: Experts | Narrow, rule: Rule, bias, out) -> torch.Tensor:
    tokens = x.shape[0]
    if not tokens:
        return out
    wanted = {"bias": bias, "shared": experts.shared}
    if isinstance(experts, Narrow):
        found = route(x, router, rule, tile=1, copy=True, **wanted)
        return combine(narrow_experts(found, experts), found, out)
    if tokens == 1:
        return one_token(x, router, experts, rule, out, bias)
    tile = pick_tile(tokens, rule.top_k, len(router))
    by_copies = tile >= FETCHED and suits_hopper(x)
    if by_copies:
        tile = pick_hopper_tile(tokens, rule.top_k, len(router))
    found = route(x, router, rule, tile=tile, copy=by_copies, **wanted)
    return combine((hopper if by_copies else gathered)(x, experts, found), found, out)


def usual_load(tokens: int, top_k: int, experts: int) -> float:
    """Return the load that few experts exceed if none is preferred."""
    mean = tokens * top_k / experts
    return min(tokens, mean + 2 * math.sqrt(mean))


def pick_tile(tokens: int, top_k: int, experts: int) -> int:
    """Choose the rows of a tile, enough for most experts, so that a weight is seldom read twice."""
    usual = usual_load(tokens, top_k, experts)
    return next((tile for tile in (16, 32, 64) if usual <= tile), WIDEST)


def pick_hopper_tile(tokens: int, top_k: int, experts: int) -> int:
    """192 where that spares most experts a second tile, of few rows, that reads all of the weights again."""
    return 192 if WIDEST < usual_load(tokens, top_k, experts) <= 192 else WIDEST


def suits_hopper(x) -> bool:
    return x.is_cuda and torch.cuda.get_device_capability(x.device)[0] == 9


def gathered(x, experts: Experts, found: Routed) -> torch.Tensor:
    """(rows, hidden) after the experts, on any GPU."""
    h = portable.gate_up(x, experts.gate_up, found, found.topk_ids.shape[1])
    return portable.down(h, experts.down, found)


def hopper(x, experts: Experts, found: Routed) -> torch.Tensor:
    """The same by the copy engine, from rows that the order brought along."""
    launch = _hopper_launch(experts.hidden)
    programs = torch.cuda.get_device_properties(x.device).multi_processor_count
    h = x.new_empty(len(found.rows), experts.intermediate)
    launch(found.rows, experts.gate_up, found, h, True, programs)
    y = x.new_empty(len(found.rows), experts.hidden)
    return launch(h, experts.down, found, y, False, programs)


def _hopper_launch(hidden: int):
    from kernels.moe_routing import experts_hopper, experts_hopper_turns

    return (experts_hopper_turns if hidden >= LONG else experts_hopper).launch
