"""Draw the inputs of *pack words* and limit their cost."""

import numpy as np

from kernels.quantization_layouts import checkpoints


def pack_words(codes):
    """GPTQ's order along K, as words without a sign."""
    return checkpoints.packed_words(codes, checkpoints.GPTQ_ORDER).view(np.uint32)
