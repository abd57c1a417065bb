"""Draw the inputs of *permute* and limit their cost."""

from kernels.moe_routing import reference


def permute(topk_ids, experts, tile):
    found = reference.order(topk_ids, experts, tile)
    return found.sorted_token_ids, found.inv_permuted_idx
