"""Draw the inputs of *to planes* and limit their cost."""

import numpy as np

from grader.questions.draws import between
from grader.topics.quantization_layouts.shared_concepts import codes
from kernels.quantization_layouts import reference


def to_planes(codes, bits):
    return np.ascontiguousarray(np.moveaxis(reference.bit_planes(codes, bits), -1, 0))


def planes(rng, bits):
    return codes(rng, between(rng, 2, 7), 32 * between(rng, 2, 5), bits), bits
