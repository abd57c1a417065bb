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
    """One graph that launches every call once, after a warm-up in which kernels compile."""
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
    """Push everything else out of the L2, as the reads of another layer would."""

    def __init__(self, device):
        l2 = torch.cuda.get_device_properties(device).L2_cache_size
        self.buffer = torch.empty(max(FLUSH_BYTES, 4 * l2) // 4, dtype=torch.int32, device=device)

    def __call__(self):
        self.buffer.zero_()


def stopwatch(graph: torch.cuda.CUDAGraph, before: Callable[[], None] | None = None) -> Callable[[], Pair]:
    """A function that enqueues one timed replay and returns its two events."""

    def once() -> Pair:
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        if before is not None:
            before()
        start.record()
        graph.replay()
        end.record()
        return start, end

    return once


def interleave(watches: dict[str, Callable[[], Pair]], seconds: float, least: int = 7, seed: int = 0) -> dict:
    """Seconds per replay, by name and round; every round runs all names in random order and back again."""
    rng = random.Random(seed)
    names, times = list(watches), {name: [] for name in watches}
    for name in names:
        watches[name]()
    torch.cuda.synchronize()
    deadline = time.perf_counter() + seconds
    while time.perf_counter() < deadline or len(times[names[0]]) < least:
        order = rng.sample(names, len(names))
        events = [(name, watches[name]()) for name in order + order[::-1]]
        torch.cuda.synchronize()
        logs = {name: 0.0 for name in names}
        for name, (start, end) in events:
            logs[name] += 0.5 * math.log(start.elapsed_time(end) * 1e-3)
        for name in names:
            times[name].append(math.exp(logs[name]))
    return times


def ratio(times: Sequence[float], base: Sequence[float], seed: int = 0) -> tuple[float, float, float]:
    """Median of times / base over paired rounds, and the bootstrap's 99% interval round it."""
    logs = [math.log(t / b) for t, b in zip(times, base, strict=True)]
    rng = random.Random(seed)
    medians = sorted(median(rng.choices(logs, k=len(logs))) for _ in range(400))
    return tuple(math.exp(x) for x in (median(logs), medians[2], medians[-3]))
