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


def layer_of_chosen(x, topk_ids, experts: Experts, *, topk_weights=None, out=None) -> torch.Tensor:
    """Return out (tokens, hidden) of x (tokens, hidden), with topk_ids int32 (tokens, k) and topk_weights fp32
    alike, 1 by default.

    A token names an expert once at most. Every run gives the same bits, and nothing waits for the GPU.
    """
    check_chosen(x, topk_ids, topk_weights, experts, out)
    if out is None:
        out = torch.empty_like(x, memory_format=torch.contiguous_format)
    tokens, slots = topk_ids.shape
    if not tokens:
        return out
    if topk_weights is None:
        topk_weights = torch.ones(tokens, slots, device=x.device)
    tile = pick_tile(tokens, slots, experts.count)
    by_copies = tile >= FETCHED and suits_hopper(x)
    if by_copies:
        tile = pick_hopper_tile(tokens, slots, experts.count)
    found = order_of(x, topk_ids, topk_weights, experts.count, tile=tile, copy=by_copies)
    return combine((hopper if by_copies else gathered)(x, experts, found), found, out)
