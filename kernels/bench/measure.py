"""Measure one row: check ours and every peer, time those that are right, and say how they compare."""

import math
from statistics import median
from typing import Any

import torch

from kernels import timing
from kernels.bench import energy
from kernels.bench.row import Absent, Factory, Row

SEED = 0
# The GPU's state when it is timed: settled under this row's load (an H200 at its power cap falls from 1980 to about
# 1450 MHz within 0.1 s), or after idling, a state that lasts only for the first 20 ms of a load.
STATES = {"sustained": {"warm": 0.3}, "rested": {"rest": 1.2}}


def error_of(check, factory: Factory, inputs: Any) -> float:
    error = float(check(inputs, factory(inputs)()))
    return error if error == error else math.inf


def measure(
    row: Row,
    device,
    ceilings: dict[str, float],
    seconds: float,
    state: str = "sustained",
    meter: energy.Meter | None = None,
) -> dict:
    """Return a JSON-ready record, without "us" if our result was not right. With a meter it has joules, too."""
    record = measured_with(row, device, seconds, STATES[state], state, meter)
    if "us" in record:
        limit = row.limit_seconds(ceilings)
        record |= {"limit_us": limit * 1e6, "share": limit * 1e6 / record["us"]}
    return record


def measured_with(row: Row, device, seconds: float, how: dict, state: str = "sustained", meter=None) -> dict:
    """Return the record without the limit, which needs ceilings. `how` is what timing.interleave does before it
    counts."""
    inputs = row.inputs(SEED)
    record = {
        "op": row.op,
        "case": row.case,
        "dtype": row.dtype,
        "mode": row.mode,
        "state": state,
        "tolerance": row.tolerance,
    } | row.facts
    record["error"] = error_of(row.check, row.ours, inputs)
    if not record["error"] <= row.tolerance:
        return record | {"wrong": f"error must be at most {row.tolerance:g}, got {record['error']:g}"}
    peers, record["peers"] = _right_peers(row, inputs)
    contenders = {"ours": row.ours, **peers}
    times, more, again = _times(row, contenders, inputs, device, seconds, record["peers"], how, meter)
    if not again <= row.tolerance:
        return record | {"wrong": f"right at first, but after the timing its error was {again:g}"}
    ours = median(times["ours"])
    record |= {"us": ours * 1e6, "tb_s": row.bytes / ours / 1e12, "tflop_s": row.flops / ours / 1e12}
    for name in times.keys() & peers.keys():
        middle, low, high = timing.ratio(times[name], times["ours"])
        record["peers"][name] |= {"us": median(times[name]) * 1e6, "ratio": middle, "interval": [low, high]}
    for name, one in more.get("joules", {}).items():
        (record if name == "ours" else record["peers"][name])["joules"] = one
    if "alone" in more:
        name, pair = more["alone"]
        middle, low, high = timing.ratio(pair[name], pair["ours"])
        record["alone"] = {
            "peer": name,
            "us": median(pair["ours"]) * 1e6,
            "peer_us": median(pair[name]) * 1e6,
        }
        record["alone"] |= {"ratio": middle, "interval": [low, high]}
    return record


def _right_peers(row: Row, inputs) -> tuple[dict[str, Factory], dict]:
    right, said = {}, {}
    for name, factory in row.peers.items():
        try:
            error = error_of(row.check_peer or row.check, factory, inputs)
        except (Absent, ImportError) as why:
            said[name] = {"absent": str(why)}
        except Exception as why:
            said[name] = _failed(why)
        else:
            said[name] = {"error": error}
            if error <= row.tolerance:
                right[name] = factory
            else:
                said[name]["wrong"] = f"error must be at most {row.tolerance:g} to be compared"
    return right, said


def _failed(why: Exception) -> dict:
    return {"failed": f"{type(why).__name__}: {why}".splitlines()[0][:160]}


def _times(
    row: Row, contenders: dict[str, Factory], inputs, device, seconds, said, how, meter=None
) -> tuple[dict, dict, float]:
    """Return the seconds per launch of each contender by round, more about ours and the fastest peer, and our error
    once all is timed. `how` is a state's.

    Ours and the fastest peer are timed again as a pair, alone, because the clock recovers while a slow peer
    runs. H200, 2026-11-28, causal attention of 16,384 tokens: FlashAttention 4 takes 0.948 of our time with four
    slower peers in the loop, and 1.008 with one. A peer that no graph can capture is left out, and `said` gets the reason.
    """
    flush = timing.Flush(device) if row.mode == "cold" else None
    sets = [inputs] if flush else [inputs, *(row.inputs(SEED + i) for i in range(1, _copies(row, device)))]
    watches, keep, graphs = {}, [], {}
    for name, factory in contenders.items():
        try:
            # a capture that fails leaves its own stream current, so come back from it
            with torch.cuda.stream(torch.cuda.current_stream()):
                calls = [factory(one) for one in sets]
                graph = timing.capture(calls)
        except Exception as why:
            if name == "ours":
                raise
            said[name] = _failed(why)
            continue
        keep.append(calls)
        graphs[name] = graph
        watches[name] = timing.stopwatch(graph, flush)
    times = timing.interleave(watches, seconds * len(watches), **how)
    torch.cuda.synchronize()
    more = {}
    middle = {name: median(series) for name, series in times.items()}
    fastest = sorted(middle.keys() - {"ours"}, key=middle.__getitem__)[:1]
    if len(times) > 2:
        pair = {name: watches[name] for name in ("ours", *fastest)}
        pair = timing.interleave(pair, 2 * seconds, **how)
        more["alone"] = fastest[0], {name: [t / len(sets) for t in series] for name, series in pair.items()}
    if meter is not None:
        more["joules"] = {n: meter.joules(graphs[n].replay) / len(sets) for n in ("ours", *fastest)}
    torch.cuda.synchronize()
    again = float(row.check(inputs, keep[0][0]()))
    return {name: [t / len(sets) for t in series] for name, series in times.items()}, more, again


def _copies(row: Row, device) -> int:
    """Return how many sets of inputs a rotation needs so that none is still in the L2 when its turn comes."""
    l2 = torch.cuda.get_device_properties(device).L2_cache_size
    return max(2, min(row.most_copies, math.ceil(max(timing.FLUSH_BYTES, 4 * l2) / row.bytes)))
