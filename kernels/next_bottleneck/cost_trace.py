"""Read the recorded trace of a decode step, in bars of the host, its calls and the GPU's streams.

`python -m kernels.decode_trace` records it on a GPU. Until a file is kept, the bars are drawn from the bytes of
cost_step.py, and `measured` says so.
"""

import json
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from kernels import require
from kernels.machines import machine
from kernels.next_bottleneck.cost_step import ONCE, step_work
from kernels.next_bottleneck.shapes import QWEN3_30B_A3B

KEPT = Path(__file__).parent / "tables" / "h200_trace.json"
RUNS = ("eager", "graph")
ORDER = ("norm", "qkv", "rotary", "attention", "out", "norm", "router", "order", "experts", "combine")
HOST_S, GRAPH_S, LEAST_S = 25e-6, 1.1e-6, 2e-6  # modelled, of a call, between a graph's kernels, of a kernel


@dataclass(frozen=True)
class Bar:
    """Hold anything that took time, in seconds from the host's first call."""

    name: str  # a slot, a call or a kernel
    slot: str
    start_s: float
    took_s: float
    stream: int = 0

    @property
    def end_s(self) -> float:
        return self.start_s + self.took_s


@dataclass(frozen=True)
class Trace:
    """Hold one run of the step. `alone_s` is its time without a profiler."""

    measured: bool
    where: str
    case: str
    alone_s: float
    host: tuple[Bar, ...]
    calls: tuple[Bar, ...]
    launches: tuple[Bar, ...]
    differ: tuple[str, ...] = ()

    @property
    def end_s(self) -> float:
        return max(bar.end_s for bar in (*self.host, *self.calls, *self.launches))

    @property
    def busy_s(self) -> float:
        """Time in which at least one kernel runs."""
        return busy_s(self.launches)


def busy_s(launches, begin: float = 0.0, end: float = float("inf")) -> float:
    """Return the time between two moments in which at least one launch runs. Overlapped time counts once."""
    found, until = 0.0, begin
    for one in sorted(launches, key=lambda one: one.start_s):
        first, last = max(one.start_s, until), min(one.end_s, end)
        found += max(0.0, last - first)
        until = max(until, last)
    return found


def own_s(launches) -> dict[str, float]:
    """Return by how much each slot's launches make the step longer. Time that two share belongs to the one that began
    first: the other fetches weights and waits."""
    found, until = {}, 0.0
    for one in sorted(launches, key=lambda one: one.start_s):
        took = max(0.0, one.end_s - max(one.start_s, until))
        found[one.slot] = found.get(one.slot, 0.0) + took
        until = max(until, one.end_s)
    return found


def of_record(kept: dict, run: str) -> Trace:
    """Return one run of a record in the form that kernels.decode_trace writes."""
    slots, names, rows = kept["slots"], kept["kernels"], kept[run]
    micro = 1e-6
    return Trace(
        True,
        kept["machine"]["gpu"],
        kept["case"],
        micro * kept[f"{run}_us"],
        tuple(Bar(slots[at], slots[at], micro * start, micro * us) for at, start, us in rows["host"]),
        tuple(Bar(names[at], "", micro * start, micro * us) for at, start, us in rows["calls"]),
        tuple(
            Bar(names[kernel], slots[at], micro * start, micro * us, stream)
            for at, kernel, start, us, stream in rows["launches"]
        ),
        tuple(kept["differ"]),
    )


def modelled(run: str, layers: int = 8, keys: int = 4096) -> Trace:
    """Return the step as its bytes predict it, labelled as a model and not a measurement."""
    gpu = machine("H200")
    works = step_work(replace(QWEN3_30B_A3B, layers=layers), 1, keys, linear_bits=4)
    host, calls, launches, at, free = [], [], [], 0.0, 0.0
    for slot in ("embed", *ORDER * layers, "last norm", "head", "sample"):
        work = works[slot]
        parts = 1 if slot in ONCE else layers * ORDER.count(slot)
        count = max(1, work.launches // parts)
        took = max(LEAST_S, work.bytes / parts / count / gpu.bandwidth)
        name = slot.removeprefix("last ")
        begin = at
        for _ in range(count):
            if run == "eager":
                calls.append(Bar("cuLaunchKernelEx", "", at + 0.6 * HOST_S, 0.2 * HOST_S))
                at += HOST_S
                start = max(at, free + GRAPH_S)
            else:
                start = free + GRAPH_S
            launches.append(Bar(f"{name}_kernel", name, start, took, 7))
            free = start + took
        if run == "eager":
            host.append(Bar(name, name, begin, at - begin))
    if run == "graph":
        calls = [Bar("cudaGraphLaunch", "", 0.0, 8e-6)]
    alone = free - launches[0].start_s
    return Trace(
        False,
        "model of an H200",
        f"{layers} layers, 1 x {keys} keys",
        alone,
        *map(tuple, (host, calls, launches)),
    )


@cache
def trace(run: str) -> Trace:
    """Return the recorded step, or the modelled one while no record is kept."""
    require.one_of(RUNS, run=run)
    if not KEPT.exists():
        return modelled(run)
    return of_record(json.loads(KEPT.read_text(encoding="utf-8")), run)
