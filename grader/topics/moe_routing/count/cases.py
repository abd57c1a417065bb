"""Draw the inputs of *count* and limit their cost."""

from kernels.moe_routing import reference


def loads_and_offsets(topk_ids, experts, tile):
    found = reference.order(topk_ids, experts, tile)
    return found.loads, found.expert_offsets
