"""Draw the inputs of *copies of* and limit their cost."""

import numpy as np


def copies_of(loads, devices, spare):
    """Copies of each expert and the tokens that the busiest of all copies gets."""
    copies = np.ones(len(loads), int)
    for _ in range(spare):
        share = np.where(copies < devices, loads / copies, -1.0)
        copies[share.argmax()] += 1
    return copies, float((loads / copies).max())
