"""Time GPU work so that two numbers may be compared: replayed graphs, a cold cache, mirrored random order."""

import math
import random
import time
from collections.abc import Callable, Sequence
from statistics import median

import torch

FLUSH_BYTES = 256 * 2**20

Pair = tuple[torch.cuda.Event, torch.cuda.Event]


def capture(calls: Sequence[Callable[[], object]]) -> torch.cuda.CUDAGraph:
    """Return one graph that launches every call once, after a warm-up in which kernels compile."""
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for call in [calls[0], *calls]:
            call()
    torch.cuda.current_stream().wait_stream(side)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for call in calls:
            call()
    return graph


class Flush:
    """Push everything else out of the L2, as the reads of another layer would.

    It reads, because lines that a flush had written would go back to memory inside the timing, and cost a short
    kernel 8%.
    """

    def __init__(self, device):
        l2 = torch.cuda.get_device_properties(device).L2_cache_size
        self.buffer = torch.randn(max(FLUSH_BYTES, 4 * l2) // 4, device=device)
        self.sum = torch.empty((), device=device)

    def __call__(self):
        torch.sum(self.buffer, dim=0, out=self.sum)


def stopwatch(graph: torch.cuda.CUDAGraph, before: Callable[[], None] | None = None) -> Callable[[], Pair]:
    """Return a function that enqueues one timed replay and returns its two events."""

    def once() -> Pair:
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        if before is not None:
            before()
        start.record()
        graph.replay()
        end.record()
        return start, end

    return once


def interleave(
    watches: dict[str, Callable[[], Pair]],
    seconds: float,
    least: int = 7,
    seed: int = 0,
    warm: float = 0.0,
    rest: float = 0.0,
) -> dict:
    """Return seconds per replay, by name and round. Every round runs all names in random order and back again.

    `warm` seconds of rounds are thrown away first, so that a GPU under its power cap has settled. Otherwise each
    round starts after `rest` idle seconds, at the clock of a GPU that was not under load.
    """
    rng = random.Random(seed)
    times = {name: [] for name in watches}
    for watch in watches.values():
        watch()
    torch.cuda.synchronize()
    settled = time.perf_counter() + warm
    while time.perf_counter() < settled:
        _round(watches, rng)
    deadline = time.perf_counter() + seconds
    while time.perf_counter() < deadline or len(next(iter(times.values()))) < least:
        time.sleep(rest)
        for name, seconds_each in _round(watches, rng).items():
            times[name].append(seconds_each)
    return times


def _round(watches: dict[str, Callable[[], Pair]], rng: random.Random) -> dict[str, float]:
    """Return seconds by name, the geometric mean of two replays equally far from the round's middle."""
    order = rng.sample(list(watches), len(watches))
    events = [(name, watches[name]()) for name in order + order[::-1]]
    torch.cuda.synchronize()
    logs = dict.fromkeys(watches, 0.0)
    for name, (start, end) in events:
        logs[name] += 0.5 * math.log(start.elapsed_time(end) * 1e-3)
    return {name: math.exp(log) for name, log in logs.items()}


def ratio(times: Sequence[float], base: Sequence[float], seed: int = 0) -> tuple[float, float, float]:
    """Return the median of times / base over paired rounds, and the bootstrap's 99% interval of this median."""
    logs = [math.log(t / b) for t, b in zip(times, base, strict=True)]
    rng = random.Random(seed)
    medians = sorted(median(rng.choices(logs, k=len(logs))) for _ in range(400))
    return tuple(math.exp(x) for x in (median(logs), medians[2], medians[-3]))


def elapsed(call: Callable[[], object], runs: int = 20) -> float:
    """Return the median seconds of a call by the GPU's events, host included."""
    took = []
    for _ in range(runs):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        torch.cuda.synchronize()
        start.record()
        call()
        end.record()
        torch.cuda.synchronize()
        took.append(1e-3 * start.elapsed_time(end))
    return median(took)
