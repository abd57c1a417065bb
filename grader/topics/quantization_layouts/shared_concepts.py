"""Share draws among numpy questions of quantization layouts."""

import numpy as np

from grader.questions.draws import between
from kernels.quantization_layouts import reference


def quantize_groups(w, group, zero_points):
    q = reference.quantize_int4(w, group, zero_points)
    zeros = q.zeros if zero_points else np.full(q.scales.shape, reference.MIDDLE, np.uint8)
    return q.codes, q.scales, zeros


def codes(rng, n, k, bits=4):
    return rng.integers(0, 2**bits, (n, k)).astype(np.uint8)


def weights(rng, group, *, n=0, groups=0, shift=0.0, size=1.0):
    n, groups = n or between(rng, 3, 9), groups or between(rng, 2, 5)
    return size * (rng.standard_normal((n, groups * group)) + shift)
