"""Count how many requests fit. Weights and key-value cache share one memory."""

import math
from dataclasses import dataclass

from kernels import require

# "Performance Engineering" reports 2x to 4x larger batches from paging, 8x to 16x with a narrower cache too.
# Its own 88% waste is 8.2x by arithmetic, and 8x to 16x takes a cache four times narrower, not int8's two.
REPORTED_PAGED_GAIN = (2, 4)
REPORTED_PAGED_AND_QUANTIZED_GAIN = (8, 16)


def kv_bytes_per_token(layers: int, kv_heads: int, head_dim: int, bits: float = 16) -> float:
    """Return the bytes of a key and a value for every layer and key head (fewer heads than queries under GQA)."""
    require.count(layers=layers, kv_heads=kv_heads, head_dim=head_dim)
    require.positive(bits=bits)
    return 2 * layers * kv_heads * head_dim * bits / 8


@dataclass(frozen=True)
class Capacity:
    """Hold the capacity of one device. Weights and cache are split evenly over the group."""

    weight_bytes: float
    memory_bytes: float
    reserve_bytes: float
    request_bytes: float
    devices: int

    @property
    def free_bytes(self) -> float:
        """Return the bytes left for the cache, negative if the weights alone don't fit."""
        return self.memory_bytes - self.weight_bytes - self.reserve_bytes

    @property
    def requests(self) -> int:
        """Return how many requests of full length fit, over the whole group."""
        return max(0, math.floor(self.free_bytes / self.request_bytes))

    @property
    def total_request_bytes(self) -> float:
        return self.request_bytes * self.devices


def serving_capacity(
    parameters: float,
    *,
    devices: int,
    memory_bytes: float,
    tokens: int,
    layers: int,
    kv_heads: int,
    head_dim: int,
    weight_bits: float = 16,
    kv_bits: float = 16,
    reserve_bytes: float = 0,
) -> Capacity:
    """Count the requests of `tokens` tokens that fit next to the weights, on `devices` devices of `memory_bytes` each."""
    require.positive(parameters=parameters, memory_bytes=memory_bytes, weight_bits=weight_bits)
    require.count(devices=devices, tokens=tokens)
    require.not_negative(reserve_bytes=reserve_bytes)
    per_token = kv_bytes_per_token(layers, kv_heads, head_dim, kv_bits)
    weights = parameters * weight_bits / 8 / devices
    return Capacity(weights, memory_bytes, reserve_bytes, per_token * tokens / devices, devices)


def fragmentation_waste(max_tokens: int, mean_tokens: float, page_tokens: int | None = None) -> float:
    """Return the share of the reserved cache that holds nothing, for whole requests reserved, or pages of
    `page_tokens`.

    With pages only a request's last one is partly empty, half on average.
    """
    require.count(max_tokens=max_tokens)
    require.positive(mean_tokens=mean_tokens)
    require.at_most(max_tokens, "a mean cannot exceed the maximum", mean_tokens=mean_tokens)
    if page_tokens is None:
        return 1 - mean_tokens / max_tokens
    require.count(page_tokens=page_tokens)
    return 1 - mean_tokens / (mean_tokens + (page_tokens - 1) / 2)


def paged_gain(max_tokens: int, mean_tokens: float, page_tokens: int = 16, kv_ratio: float = 1.0) -> float:
    """Return the factor of requests that fit with pages, times `kv_ratio` for a cache smaller by that factor."""
    require.positive(kv_ratio=kv_ratio)
    before = 1 - fragmentation_waste(max_tokens, mean_tokens)
    return kv_ratio * (1 - fragmentation_waste(max_tokens, mean_tokens, page_tokens)) / before
