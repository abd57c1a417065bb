"""Compute the reference of *exposed* and draw its inputs."""

import numpy as np


def exposed(ready, seconds, end_s):
    """Return when the link is done, and the part that no computation covers."""
    free = 0.0
    for start, takes in zip(ready, seconds, strict=True):
        free = max(free, start) + takes
    return float(free), max(0.0, float(free) - end_s)


def case(rng, buckets, share):
    """Draw buckets that fill over a backward pass. The link needs about `share` of the pass."""
    end = float(rng.uniform(0.05, 0.3))
    ready = np.sort(rng.uniform(0, end, buckets))
    ready[-1] = end
    return ready, end * share / buckets * rng.uniform(0.5, 1.5, buckets), end
