"""Compute the payoff of narrow weights, seconds of bandwidth saved against seconds of unpacking added."""

import math
from dataclasses import dataclass

from kernels import require

# Where the unpacking happens decides what it costs.
PLACEMENTS = {
    "exposed": "nothing hides it: its time adds to the step",
    "fused": "inside the kernel, before each multiply: hides under the weight stream, not the arithmetic",
    "asynchronous": "beside an asynchronous multiply: only the longest of stream, unpacking and arithmetic",
    "separate": "a kernel of its own, which writes 16-bit weights for a library GEMM to read again",
}


def weights_streamed(
    dense_step_s: float, bandwidth_byte_s: float, weight_share: float = 1.0, dense_bits: float = 16
) -> float:
    """Return the weights that a dense decode step reads, if `weight_share` of its time streams them."""
    require.positive(dense_step_s=dense_step_s, bandwidth_byte_s=bandwidth_byte_s, dense_bits=dense_bits)
    require.share(weight_share=weight_share)
    return dense_step_s * weight_share * bandwidth_byte_s * 8 / dense_bits


def dequant_s_per_weight(dequant_s_per_byte: float, bits: float) -> float:
    """Convert an overhead for each packed byte to an overhead for each weight."""
    require.not_negative(dequant_s_per_byte=dequant_s_per_byte)
    require.positive(bits=bits)
    return dequant_s_per_byte * bits / 8


@dataclass(frozen=True)
class Payoff:
    dense_memory_s: float  # streaming 16-bit weights
    quant_memory_s: float  # streaming packed weights
    compute_s: float  # the arithmetic, the same for both
    dequant_s: float  # unpacking, all passes over the weights
    other_s: float  # the rest of the step, untouched
    bytes_saved: float
    passes: int
    weights: float
    placement: str

    @property
    def dense_step_s(self) -> float:
        return max(self.dense_memory_s, self.compute_s) + self.other_s

    def _linear_s(self, dequant_s: float) -> float:
        stream_s, compute_s = self.quant_memory_s, self.compute_s
        if self.placement == "exposed":
            return max(stream_s, compute_s) + dequant_s
        if self.placement == "fused":
            return max(stream_s, compute_s + dequant_s)
        if self.placement == "asynchronous":
            return max(stream_s, compute_s, dequant_s)
        unpack_s = max(stream_s + self.dense_memory_s, dequant_s)
        return unpack_s + max(self.dense_memory_s, compute_s)

    @property
    def quant_step_s(self) -> float:
        return self._linear_s(self.dequant_s) + self.other_s

    @property
    def saved_s(self) -> float:
        """Return the seconds that fewer bytes alone would save at this batch, 0 once arithmetic is the limit."""
        fewer_s = max(self.quant_memory_s, self.compute_s)
        return max(self.dense_memory_s, self.compute_s) - fewer_s

    @property
    def added_s(self) -> float:
        """Return the seconds that unpacking adds."""
        return self._linear_s(self.dequant_s) - max(self.quant_memory_s, self.compute_s)

    @property
    def speedup(self) -> float:
        return self.dense_step_s / self.quant_step_s

    @property
    def eaten(self) -> float:
        """Return the share of the saving that unpacking eats. 1 is break-even, infinite means that there was nothing to save."""
        if self.saved_s > 0:
            return self.added_s / self.saved_s
        return math.inf if self.added_s > 0 else 0.0

    @property
    def break_even_dequant_s_per_weight(self) -> float:
        """Return the unpacking time per weight that makes the step as slow as the dense one, 0 if none is affordable."""
        dense_s = max(self.dense_memory_s, self.compute_s)
        budget_s = {
            "exposed": self.saved_s,
            "fused": dense_s - self.compute_s,
            "asynchronous": dense_s,
            "separate": 0.0,
        }[self.placement]
        return budget_s / (self.weights * self.passes) if self.weights else 0.0

    @property
    def verdict(self) -> str:
        """Return 'pays', 'mostly eaten' (half the saving or more), 'eaten', or 'nothing to save'."""
        if self.saved_s <= 0:
            return "nothing to save"
        if self.eaten >= 1:
            return "eaten"
        return "mostly eaten" if self.eaten >= 0.5 else "pays"

    @property
    def warns(self) -> bool:
        return self.verdict in ("eaten", "nothing to save")


def payoff(
    dense_step_s: float,
    *,
    bits: float,
    dequant_s_per_weight: float,
    bandwidth_byte_s: float,
    peak_flop_s: float,
    batch: int = 1,
    weight_share: float = 1.0,
    placement: str = "exposed",
    tile_rows: int = 64,
    dense_bits: float = 16,
) -> Payoff:
    """Compute a dense decode step of `dense_step_s` at batch 1 with packed weights of `bits` at `batch`.

    Weights are unpacked once for every `tile_rows` rows of the batch, or once in all by a kernel of its own.
    """
    require.positive(bits=bits, peak_flop_s=peak_flop_s, tile_rows=tile_rows)
    require.at_most(dense_bits, "narrow weights cannot be wider than the dense ones", bits=bits)
    require.not_negative(dequant_s_per_weight=dequant_s_per_weight)
    require.count(batch=batch, tile_rows=tile_rows)
    require.one_of(tuple(PLACEMENTS), placement=placement)
    weights = weights_streamed(dense_step_s, bandwidth_byte_s, weight_share, dense_bits)
    dense_memory_s = dense_step_s * weight_share
    passes = 1 if placement == "separate" else math.ceil(batch / tile_rows)
    return Payoff(
        dense_memory_s=dense_memory_s,
        quant_memory_s=dense_memory_s * bits / dense_bits,
        compute_s=2 * weights * batch / peak_flop_s,
        dequant_s=weights * dequant_s_per_weight * passes,
        other_s=dense_step_s - dense_memory_s,
        bytes_saved=weights * (dense_bits - bits) / 8,
        passes=passes,
        weights=weights,
        placement=placement,
    )


def break_even_batch(dense_step_s: float, *, limit: int = 1024, **given) -> int | None:
    """Return the smallest batch at which narrow weights no longer win, or None if they win up to `limit`."""
    require.count(limit=limit)
    for batch in range(1, limit + 1):
        one = payoff(dense_step_s, batch=batch, **given)
        if one.quant_step_s >= one.dense_step_s:
            return batch
    return None


def stored_step_s(paid: Payoff, rate_ratio: float = 1.0) -> float:
    """Return the step of weights that are multiplied as they are stored, with nothing to unpack and `rate_ratio`
    times the FLOP/s."""
    require.positive(rate_ratio=rate_ratio)
    return max(paid.quant_memory_s, paid.compute_s / rate_ratio) + paid.other_s
