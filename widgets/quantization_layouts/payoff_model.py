"""Compute a decode step with narrow weights for the accountant, at one batch and those around it, in every format."""

import math
from dataclasses import dataclass

from kernels.machines import Machine, machine
from kernels.quantization_layouts import cost

DENSE_BITS = 16
MOST_BATCH = 512
STORED = {"fp8 (E4M3 / E5M2)": "fp8", "int8 W8A8": "int8", "NVFP4": "fp4"}  # what tensor cores take as it is


@dataclass(frozen=True)
class Step:
    """Hold the two steps at one batch."""

    batch: int
    dense_s: float
    quant_s: float


@dataclass(frozen=True)
class Row:
    """Hold a format of the table in this state."""

    name: str
    bits_per_weight: float
    activation_bits: int
    step_s: float
    speedup: float
    unpacked: bool
    kernels: tuple[str, ...]
    note: str


@dataclass(frozen=True)
class Result:
    bits: int
    group: int
    scale_bits: int
    bits_per_weight: float
    metadata_share_of_payload: float
    metadata_share_of_dense: float
    batch: int
    passes: int
    placement: str
    machine: str
    weights: float
    dense_bytes: float
    quant_bytes: float
    bytes_saved: float
    dense_stream_s: float
    quant_stream_s: float
    compute_s: float
    dequant_s: float  # all passes
    other_s: float
    dense_s: float
    saved_s: float
    added_s: float
    quant_s: float
    speedup: float
    eaten_share: float  # of the saving, or 0 if there is none
    verdict: str
    affordable_dequant_s: float  # of one pass, where the steps are equal
    tile_rows: int  # a batch with more rows unpacks the weights again
    break_even_batch: int  # the first batch that no longer wins, or 0 if all do
    curve: tuple[Step, ...]
    formats: tuple[Row, ...]


def run(
    bits, dequant_ms, dense_ms, batch, placement, group, scale_bits, weight_percent, tile_rows, machine_name
):
    target, dense_s, share = machine(machine_name), dense_ms / 1e3, weight_percent / 100
    weights = cost.weights_streamed(dense_s, target.bandwidth, share, DENSE_BITS)
    given = {
        "dequant_s_per_weight": dequant_ms / 1e3 / weights,
        "bandwidth_byte_s": target.bandwidth,
        "peak_flop_s": target.rate("fp16"),
        "weight_share": share,
        "placement": placement,
        "tile_rows": tile_rows,
    }
    wide = cost.bits_per_weight(bits, group, scale_bits)
    paid = cost.payoff(dense_s, bits=wide, batch=batch, **given)
    return Result(
        bits,
        group,
        scale_bits,
        wide,
        cost.metadata_share(bits, group, scale_bits),
        cost.metadata_share(bits, group, scale_bits, of_bits=DENSE_BITS),
        batch,
        paid.passes,
        placement,
        machine_name,
        weights,
        cost.model_bytes(weights, DENSE_BITS),
        cost.model_bytes(weights, wide),
        paid.bytes_saved,
        paid.dense_memory_s,
        paid.quant_memory_s,
        paid.compute_s,
        paid.dequant_s,
        paid.other_s,
        paid.dense_step_s,
        paid.saved_s,
        paid.added_s,
        paid.quant_step_s,
        paid.speedup,
        paid.eaten if math.isfinite(paid.eaten) else 0.0,
        paid.verdict,
        paid.break_even_dequant_s_per_weight * weights,
        tile_rows,
        cost.break_even_batch(dense_s, bits=wide, limit=MOST_BATCH, **given) or 0,
        _curve(dense_s, wide, tile_rows, given),
        _formats(dense_s, batch, given, target),
    )


def _curve(dense_s: float, bits: float, tile_rows: int, given: dict) -> tuple[Step, ...]:
    """Return enough batches for a smooth line, and both sides of every jump to one more unpacking pass."""
    even = {round(MOST_BATCH ** (i / 48)) for i in range(49)}
    jumps = {b for first in range(tile_rows, MOST_BATCH, tile_rows) for b in (first, first + 1)}
    points = []
    for batch in sorted(even | jumps):
        paid = cost.payoff(dense_s, bits=bits, batch=batch, **given)
        points.append(Step(batch, paid.dense_step_s, paid.quant_step_s))
    return tuple(points)


def _formats(dense_s: float, batch: int, given: dict, target: Machine) -> tuple[Row, ...]:
    """Return every format in this state. A format that the machine multiplies as it is stored needs no unpacking."""
    rows = []
    for form in cost.FORMATS.values():
        paid = cost.payoff(dense_s, bits=form.bits_per_weight, batch=batch, **given)
        native = target.flops.get(STORED.get(form.name, ""))
        unpacked = form.bits < DENSE_BITS and native is None
        step_s = paid.quant_step_s
        if not unpacked:
            step_s = cost.stored_step_s(paid, (native or target.rate("fp16")) / target.rate("fp16"))
        rows.append(
            Row(
                form.name,
                form.bits_per_weight,
                form.activation_bits,
                step_s,
                paid.dense_step_s / step_s,
                unpacked,
                form.kernels,
                form.note,
            )
        )
    return tuple(rows)
