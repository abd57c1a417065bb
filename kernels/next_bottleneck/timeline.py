"""Assign each launch of a step to its slot, from a torch.profiler trace: the remainder, launch by launch.

An eager step says which slot it is in (annotated). A captured step can't, but launches nearly the same kernels
in the same order, so the eager run's labels fit its times. Where the two differ, names are aligned and the difference is
reported: a graph may drop an empty launch, or fill memory by a node of its own.
"""

import json
import tempfile
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

MARK = "slot "


@dataclass(frozen=True)
class Launch:
    """One kernel on the GPU, with times in microseconds from the step's first kernel."""

    slot: str
    kernel: str
    start_us: float
    us: float
    stream: int = 0

    @property
    def end_us(self) -> float:
        return self.start_us + self.us


def annotated(name: str, call: Callable) -> Callable:
    """Return the call, which tells a profiler its slot."""
    from torch.profiler import record_function

    def told(*given):
        with record_function(MARK + name):
            return call(*given)

    return told


def events_of(call) -> list[dict]:
    """Return a profiler's record of one call, on the GPU and on the host."""
    import torch
    from torch.profiler import ProfilerActivity, profile

    torch.cuda.synchronize()
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as seen:
        call()
        torch.cuda.synchronize()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "trace.json"
        seen.export_chrome_trace(str(path))
        return json.loads(path.read_text(encoding="utf-8"))["traceEvents"]


def kernels_of(events: Iterable[dict]) -> list[dict]:
    """Return the GPU's launches, in order. A copy or a fill counts too."""
    met = [e for e in events if e.get("cat") in ("kernel", "gpu_memcpy", "gpu_memset")]
    return sorted(met, key=lambda e: e["ts"])


def launches_something(event: dict) -> bool:
    """Say whether an event is the host's call for a kernel, a copy, a fill or a whole graph."""
    asks = ("Launch", "MemcpyAsync", "MemsetAsync")
    return event.get("cat") in ("cuda_runtime", "cuda_driver") and any(word in event["name"] for word in asks)


def slot_ranges(events: Iterable[dict]) -> list[tuple[float, float, str]]:
    """Return (start, end, slot) of what annotated calls took on the host, in the trace's µs."""
    return [
        (e["ts"], e["ts"] + e["dur"], e["name"].removeprefix(MARK))
        for e in events
        if e.get("cat") == "user_annotation" and e["name"].startswith(MARK)
    ]


def labels(events: list[dict]) -> list[tuple[str, str]]:
    """Return (slot, kernel) of each launch in the GPU's order, out of an eager trace's "traceEvents".

    A kernel belongs to the innermost range of its launch, or to the loop if there is no range.
    """
    ranges = slot_ranges(events)
    asked = {
        e["args"]["correlation"]: e["ts"]
        for e in events
        if e.get("cat") in ("cuda_runtime", "cuda_driver") and "correlation" in e.get("args", {})
    }

    def slot_of(kernel: dict) -> str:
        at = asked.get(kernel["args"].get("correlation"))
        met = [one for one in ranges if at is not None and one[0] <= at <= one[1]]
        return min(met, key=lambda one: one[1] - one[0])[2] if met else "loop"

    return [(slot_of(kernel), kernel["name"]) for kernel in kernels_of(events)]


def _matches(told: Sequence[str], met: Sequence[str]) -> list[tuple[int, int]]:
    """Return the index pairs of a longest common subsequence.

    difflib takes the longest block first. A step repeats its layers, so that block may be a layer too early.
    """
    longest = [[0] * (len(met) + 1) for _ in range(len(told) + 1)]
    for i in reversed(range(len(told))):
        for j in reversed(range(len(met))):
            same = told[i] == met[j]
            longest[i][j] = 1 + longest[i + 1][j + 1] if same else max(longest[i + 1][j], longest[i][j + 1])
    i, j, found = 0, 0, []
    while i < len(told) and j < len(met):
        if told[i] == met[j]:
            found.append((i, j))
            i, j = i + 1, j + 1
        elif longest[i + 1][j] >= longest[i][j + 1]:
            i += 1
        else:
            j += 1
    return found


def aligned(told: Sequence[tuple[str, str]], met: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return the slot of each kernel in `met`, and a sentence for each launch that only one of the two runs has.

    Between two kernels that match, the runs' other launches are taken to replace each other in order. A launch without
    a partner belongs to the preceding slot.
    """
    slots, differ, i, j = [], [], 0, 0
    for at, to in [*_matches([name for _, name in told], met), (len(told), len(met))]:
        for place in range(max(at - i, to - j)):
            eager = told[i + place] if i + place < at else None
            graph = met[j + place] if j + place < to else None
            before = slots[-1] if slots else "loop"
            where = f"eager launch {i + place}" if eager else f"graph launch {j + place}"
            if graph is None:
                differ.append(f"{where}, {eager[0]}: the graph has no {eager[1]}")
            elif eager is None:
                differ.append(f"{where}, after {before}: the eager run has no {graph}")
                slots.append(before)
            else:
                differ.append(f"{where}, {eager[0]}: {eager[1]} is {graph} in the graph")
                slots.append(eager[0])
        if at < len(told):
            slots.append(told[at][0])
        i, j = at + 1, to + 1
    return slots, differ


def timeline(events: list[dict], told: Sequence[tuple[str, str]]) -> tuple[list[Launch], list[str]]:
    """Return a captured step's launches with the eager run's labels, and where the two runs' launches differ."""
    met = kernels_of(events)
    slots, differ = aligned(told, [kernel["name"] for kernel in met])
    first = met[0]["ts"] if met else 0
    found = [
        Launch(slot, one["name"], one["ts"] - first, one["dur"], one["args"].get("stream", 0))
        for one, slot in zip(met, slots, strict=True)
    ]
    return found, differ


@dataclass(frozen=True)
class Share:
    """A slot's part of a step, in kernels and in the gap before each kernel."""

    launches: int
    busy_us: float
    gap_us: float


def by_slot(launches: list[Launch]) -> dict[str, Share]:
    """Return each slot's launches, time in kernels and idle time before them. Their sums are the step."""
    found, end = {}, 0.0
    for one in launches:
        old = found.get(one.slot, Share(0, 0.0, 0.0))
        gap = max(0.0, one.start_us - end)
        busy = max(0.0, one.end_us - max(end, one.start_us))  # overlapped time is the earlier one's
        found[one.slot] = Share(old.launches + 1, old.busy_us + busy, old.gap_us + gap)
        end = max(end, one.end_us)
    return found
