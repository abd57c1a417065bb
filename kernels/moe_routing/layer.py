"""The whole layer: route, order, gate and up, down, combine, in three to five launches by the number of tokens.

One token: the router's launch, then two streams of weights, the second of which combines. Up to 16 tokens the router's
launch orders them too. More tokens are ordered by a launch of their own.
"""

import math

import torch

from kernels.moe_routing import experts as portable
from kernels.moe_routing.arguments import Experts, check_layer
from kernels.moe_routing.combine import combine
from kernels.moe_routing.one_token import one_token
from kernels.moe_routing.routed import route
from kernels.moe_routing.rules import Rule


def layer(x, router, experts: Experts, rule: Rule, *, bias=None, out=None) -> torch.Tensor:
    """out (tokens, hidden) of x (tokens, hidden): router (experts, hidden), and the weights that it chooses from.

    Shared experts add their own share to every token. The same bits come out at every run; nothing waits for the GPU.
    """
    check_layer(x, router, experts, rule, bias, out)
    if out is None:
        out = torch.empty_like(x, memory_format=torch.contiguous_format)
    tokens, picks = x.shape[0], rule.top_k + experts.shared
    if not tokens:
        return out
    tile = pick_tile(tokens, picks, experts.count)
    found = route(x, router, rule, bias=bias, shared=experts.shared, tile=tile)
    if tokens == 1:
        return one_token(x, experts, found, out)
    h = portable.gate_up(x, experts.gate_up, found, picks)
    y = portable.down(h, experts.down, found)
    return combine(y, found, out)


def pick_tile(tokens: int, picks: int, experts: int) -> int:
    """Rows of a tile: what most experts get if none is preferred, so that a weight is seldom read twice."""
    mean = tokens * picks / experts
    usual = min(tokens, mean + 2 * math.sqrt(mean))
    return next((tile for tile in (16, 32, 64) if usual <= tile), 128)
