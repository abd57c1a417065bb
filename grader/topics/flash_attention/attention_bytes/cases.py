"""Draw the inputs of *attention bytes* and limit their cost."""

from kernels.flash_attention import cost


def state_bytes(length, heads, head_dim, elem_bytes):
    shape = cost.Shape(length, length, head_dim, heads, heads, elem_bytes=elem_bytes)
    return cost.naive_state_bytes(shape), cost.tiled_state_bytes(shape)
