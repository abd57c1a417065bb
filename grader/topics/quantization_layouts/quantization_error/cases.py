"""Draw the inputs of *quantization error* and limit their cost."""

import numpy as np

from grader.topics.quantization_layouts.shared_concepts import quantize_groups, weights
from kernels.quantization_layouts import reference


def quantization_error(w, codes, scales, zeros, group):
    """Root mean square of the error as a share of the weights' own, and the largest error in steps of its scale."""
    off = np.abs(reference.values(reference.Int4(codes, scales, zeros, group)) - w)
    steps = off / reference.along_k(scales, group)
    return float(np.sqrt((off**2).mean() / (w**2).mean())), float(steps.max())


def quantized(rng, group, zero_points, **more):
    """Quantize a weight whose groups differ in size, so that neither a scale nor a zero point works for another
    group."""
    w = weights(rng, group, **more)
    w *= np.repeat(2.0 ** rng.uniform(-4, 2, (len(w), w.shape[1] // group)), group, axis=1)
    return w, *quantize_groups(w, group, zero_points), group
