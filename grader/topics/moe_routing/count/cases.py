"""count: the inputs of its cases, and what they may cost."""

from kernels.moe_routing import reference


def loads_and_offsets(chosen, experts, tile):
    found = reference.order(chosen, experts, tile)
    return found.loads, found.offsets
