"""Draw the inputs of *count* and limit their cost."""

from kernels.moe_routing import reference


def loads_and_offsets(chosen, experts, tile):
    found = reference.order(chosen, experts, tile)
    return found.loads, found.expert_offsets
