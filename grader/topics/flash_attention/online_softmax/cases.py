"""Draw the inputs of *online softmax* and limit their cost."""

import numpy as np

from kernels.flash_attention import cost, reference


def online_states(tiles) -> list:
    return [(m, rescale, total) for m, rescale, total, _ in reference.online_softmax(tiles)]


def tiles(rng, count, width, spread=1.0):
    return (spread * rng.standard_normal((count, width))).round(3)


SCENE = np.array(cost.SCENE.scores, float)
