"""Compute the reference of *queue waits* and draw its inputs."""

import numpy as np


def queue_waits(arrivals, services):
    """Return each request's wait. Requests come in the order of their arrival."""
    if np.any(np.diff(arrivals) < 0):
        raise ValueError("arrivals must not decrease")
    free, waits = 0.0, []
    for arrived, takes in zip(arrivals, services, strict=True):
        start = max(free, arrived)
        waits.append(start - arrived)
        free = start + takes
    return np.array(waits)


def case(rng, requests, load):
    """Draw arrivals at random, and services that vary."""
    return np.cumsum(rng.exponential(1.0, requests)), load * rng.uniform(0.4, 1.6, requests)
