"""Draw the inputs of *unpack words* and limit their cost."""

import numpy as np

from kernels.quantization_layouts import checkpoints


def unpack_words(words):
    return checkpoints.codes_of(words, checkpoints.GPTQ_ORDER)


def words(rng, n, words):
    return rng.integers(0, 2**32, (n, words), np.uint32)
