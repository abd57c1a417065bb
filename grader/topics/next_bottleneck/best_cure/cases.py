"""Compute the reference of *best cure* and draw its inputs."""

import numpy as np


def best_cure(times, removable):
    """Return the part whose cure saves most, the step after it, and the step's speed-up."""
    saved = times * removable
    part, before = int(saved.argmax()), float(times.sum())
    after = before - float(saved[part])
    return part, after, before / after


def profile(rng, parts):
    """Draw a profile whose largest part has little to remove."""
    times = rng.uniform(0.2, 4.0, parts)
    removable = rng.uniform(0.1, 0.9, parts)
    largest = int(times.argmax())
    removable[largest] = rng.uniform(0.0, 0.1) * np.min(times) / times[largest]
    return times, removable
