"""Multiply a share of an input's elements by a power of two, as a case says that balanced.py made."""

import numpy as np

from grader.box.serve.frames import DTYPES

LARGEST = {"fp16": 60_000.0, "fp8e4nv": 448.0}


def applied(scaled: dict, inputs: dict, rng: np.random.Generator) -> dict:
    """Return the inputs, or weights, with elements times powers of two as they say."""
    found = dict(inputs)
    for name, (power, share) in scaled.items():
        if name not in inputs:
            continue
        value = inputs[name]
        chosen = rng.random(value.shape) < share
        wide = np.where(chosen, value.astype(np.float64) * 2.0**power, value.astype(np.float64))
        for dtype, most in LARGEST.items():
            if value.dtype == DTYPES[dtype]:
                wide = np.clip(wide, -most, most)
        found[name] = wide.astype(np.float32).astype(value.dtype)
    return found
