"""Which slot each launch of a step belongs to, out of a torch.profiler trace: the remainder, launch by launch.

A step that runs eagerly says which slot it is in (annotated). A captured one can't, but launches the same kernels in the
same order, so the eager run's labels fit its times.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from kernels.require import must

MARK = "slot "


@dataclass(frozen=True)
class Launch:
    """One kernel on the GPU; times in microseconds from the step's first kernel."""

    slot: str
    kernel: str
    start_us: float
    us: float

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


def _kernels(events: Iterable[dict]) -> list[dict]:
    """What ran on the GPU, in order; a copy or a fill is a launch too."""
    met = [e for e in events if e.get("cat") in ("kernel", "gpu_memcpy", "gpu_memset")]
    return sorted(met, key=lambda e: e["ts"])


def labels(events: list[dict]) -> list[tuple[str, str]]:
    """Return (slot, kernel) of each launch in the GPU's order, out of an eager trace's "traceEvents".

    A kernel belongs to the innermost range in which its launch was asked for; outside of all it is the loop's own.
    """
    ranges = [
        (e["ts"], e["ts"] + e["dur"], e["name"].removeprefix(MARK))
        for e in events
        if e.get("cat") == "user_annotation" and e["name"].startswith(MARK)
    ]
    asked = {
        e["args"]["correlation"]: e["ts"]
        for e in events
        if e.get("cat") in ("cuda_runtime", "cuda_driver") and "correlation" in e.get("args", {})
    }

    def slot_of(kernel: dict) -> str:
        at = asked.get(kernel["args"].get("correlation"))
        met = [one for one in ranges if at is not None and one[0] <= at <= one[1]]
        return min(met, key=lambda one: one[1] - one[0])[2] if met else "loop"

    return [(slot_of(kernel), kernel["name"]) for kernel in _kernels(events)]


def timeline(events: list[dict], told: list[tuple[str, str]]) -> list[Launch]:
    """Return a captured step's launches with the eager run's labels; refuse another sequence of kernels."""
    met = _kernels(events)
    must(
        len(met) == len(told), "launches", f"{len(told)} as the eager step's", len(met), "trace one step each"
    )
    for place, (kernel, (_, name)) in enumerate(zip(met, told, strict=True)):
        same = kernel["name"] == name
        must(same, f"launch {place}", name, kernel["name"], "the graph must be of the same step")
    first = met[0]["ts"] if met else 0
    return [
        Launch(slot, name, kernel["ts"] - first, kernel["dur"])
        for kernel, (slot, name) in zip(met, told, strict=True)
    ]


@dataclass(frozen=True)
class Share:
    """A slot's part of a step: in kernels, and in the gap before each of them."""

    launches: int
    busy_us: float
    gap_us: float


def by_slot(launches: list[Launch]) -> dict[str, Share]:
    """Return each slot's launches, time in kernels and time before them with nothing running; sums are the step."""
    found, end = {}, 0.0
    for one in launches:
        old = found.get(one.slot, Share(0, 0.0, 0.0))
        gap = max(0.0, one.start_us - end)
        busy = max(0.0, one.end_us - max(end, one.start_us))  # overlapped time is the earlier one's
        found[one.slot] = Share(old.launches + 1, old.busy_us + busy, old.gap_us + gap)
        end = max(end, one.end_us)
    return found
