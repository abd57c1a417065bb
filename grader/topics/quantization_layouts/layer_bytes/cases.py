"""Draw the inputs of *layer bytes* and limit their cost."""

from kernels.quantization_layouts import cost


def layer_bytes(m, n, k, bits, group, zero_bits):
    return cost.linear_cost(m, n, k, bits=bits, group=group, zero_bits=zero_bits).bytes_moved
