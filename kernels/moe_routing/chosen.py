"""Run the layer without a router, on rows that come with the experts chosen for them.

A rank of an expert-parallel layer does this with the rows that have reached it, one pair each, of weight 1. One
launch counts the pairs instead of the router. Order, grouped matmuls and combine are the layer's own:

    count | order | gate and up | down | combine
"""

import torch

from kernels.moe_routing.arguments import Experts, check_chosen
from kernels.moe_routing.combine import combine
from kernels.moe_routing.layer import FETCHED, gathered, hopper, pick_hopper_tile, pick_tile, suits_hopper
from kernels.moe_routing.routed import order_of


def layer_of_chosen(x, chosen, experts: Experts, *, weights=None, out=None) -> torch.Tensor:
    """Return out (tokens, hidden) of x (tokens, hidden), with chosen int32 (tokens, k) and weights fp32 alike, 1 by default.

    A token names an expert once at most. Every run gives the same bits, and nothing waits for the GPU.
    """
    check_chosen(x, chosen, weights, experts, out)
    if out is None:
        out = torch.empty_like(x, memory_format=torch.contiguous_format)
    tokens, picks = chosen.shape
    if not tokens:
        return out
    if weights is None:
        weights = torch.ones(tokens, picks, device=x.device)
    tile = pick_tile(tokens, picks, experts.count)
    by_copies = tile >= FETCHED and suits_hopper(x)
    if by_copies:
        tile = pick_hopper_tile(tokens, picks, experts.count)
    found = order_of(x, chosen, weights, experts.count, tile=tile, copy=by_copies)
    return combine((hopper if by_copies else gathered)(x, experts, found), found, out)
