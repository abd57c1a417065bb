"""exposed: the reference, and the inputs of its cases."""

import numpy as np


def exposed(ready, seconds, end_s):
    """Return when the link is done, and what of it no computation covers."""
    free = 0.0
    for start, takes in zip(ready, seconds, strict=True):
        free = max(free, start) + takes
    return float(free), max(0.0, float(free) - end_s)


def case(rng, buckets, share):
    """Draw buckets that fill over a backward pass; the link needs about `share` of it."""
    end = float(rng.uniform(0.05, 0.3))
    ready = np.sort(rng.uniform(0, end, buckets))
    ready[-1] = end
    return ready, end * share / buckets * rng.uniform(0.5, 1.5, buckets), end
