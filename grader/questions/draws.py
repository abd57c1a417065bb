"""Draw cases for every topic: odd sizes, knobs from whole ranges, and a separate memory layout for each tensor."""

import math

import numpy as np

from grader.box.serve.frames import DTYPES

# Half the gap between neighbours, relative to the number. One rounding of a right result may cost this half.
ROUNDING = {"fp16": 2.0**-11, "bf16": 2.0**-8, "fp32": 2.0**-24}
SMALLEST = {"fp16": 2.0**-24, "bf16": 1e-30, "fp32": 1e-30}  # fp16's smallest steps are absolute

# Of the sum of magnitudes: an fp32 sum in any order, and what each term may lose besides, since a tensor core cuts off where
# fp32 rounds (an H200 loses 6.6e-9 a term of one sign).
FP32_SUM, CUT_OFF = 2.0**-16, 2.0**-26


def sum_off(terms: int) -> float:
    """Return by how much an fp32 sum of products may be off, relative to the sum of their magnitudes."""
    return FP32_SUM + CUT_OFF * terms


def between(rng: np.random.Generator, low: int, high: int) -> int:
    """Draw a whole number, both ends included."""
    return int(rng.integers(low, high + 1))


def odd(rng: np.random.Generator, low: int, high: int) -> int:
    return between(rng, low // 2, (high - 1) // 2) * 2 + 1


def log_uniform(rng: np.random.Generator, low: float, high: float) -> float:
    """Draw a knob's value from its whole range, each factor of ten as likely as the next."""
    return float(math.exp(rng.uniform(math.log(low), math.log(high))))


OVERSHADOWED = "small numbers between large ones of weight 0"


def overshadowed(count: int, wide: int) -> np.ndarray:
    """Return factors that make stretches of large and of small numbers alternate. The small ones matter only where the large
    ones have the weight 0."""
    return np.where(np.arange(count) // wide % 2 == 0, 2.0**13, 2.0**-14)


def spread(rng: np.random.Generator, *names: str) -> dict:
    """Draw a layout for each tensor. No stride is 1, and no two tensors share their strides."""
    chosen = rng.permutation(np.arange(2, 3 + len(names)))
    return {name: f"spread {n}" for name, n in zip(names, chosen, strict=False)}


def rounded(values: np.ndarray, dtype: str) -> np.ndarray:
    return values.astype(np.float32).astype(DTYPES[dtype])


def where_finite(allowed: np.ndarray, want: np.ndarray) -> np.ndarray:
    """Keep the tolerance where the expected value is finite. Nothing is close to an infinity or a NaN."""
    return np.where(np.isfinite(want), np.nan_to_num(allowed, nan=0.0, posinf=0.0), 0.0)
