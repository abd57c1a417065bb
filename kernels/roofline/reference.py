"""Compute LayerNorm(GELU(x)) in float64, the only reference of the topic."""

from math import erf, sqrt

import numpy as np

normal_distribution = np.vectorize(lambda x: 0.5 * (1.0 + erf(x / sqrt(2.0))), otypes=[np.float64])


def gelu(x: np.ndarray) -> np.ndarray:
    """Return x times the probability that a normal number is below x, the exact GELU and not the tanh approximation."""
    x = x.astype(np.float64)
    each, place = np.unique(x, return_inverse=True)  # numbers of 16 bits repeat
    return x * normal_distribution(each)[place].reshape(x.shape)


def layer_norm(x: np.ndarray, weight: np.ndarray, bias: np.ndarray, eps: float = 1e-5) -> np.ndarray:
    """Shift each row to mean 0 and scale it to variance 1 (divided by n, not n - 1), then apply weight and bias."""
    x = x.astype(np.float64)
    centred = x - x.mean(axis=-1, keepdims=True)
    variance = (centred**2).mean(axis=-1, keepdims=True)
    return centred / np.sqrt(variance + eps) * weight.astype(np.float64) + bias.astype(np.float64)


def layernorm_gelu(x: np.ndarray, weight: np.ndarray, bias: np.ndarray, eps: float = 1e-5) -> np.ndarray:
    return layer_norm(gelu(x), weight, bias, eps)
