"""Sample times in pairs of the answer and its baseline, as graphs replayed in random order."""

import math
import random
import subprocess
import sys
from contextlib import contextmanager

import torch

from grader.bench.inside.buffers import InputSet

SAMPLE_S = 1e-3
WARM_S = 0.3


def graph_of(call, sets: list[InputSet], count: int) -> torch.cuda.CUDAGraph:
    """`count` calls over rotating inputs as one graph, so that no launch from the host is timed."""
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        for i in range(min(3, len(sets))):
            call(sets[i])
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for i in range(count):
            call(sets[i % len(sets)])
    return graph


def seconds(graph, times: int = 1) -> float:
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    start.record()
    for _ in range(times):
        graph.replay()
    end.record()
    torch.cuda.synchronize()
    return start.elapsed_time(end) / 1e3


def graphs_for(answer, bar, sets: list[InputSet]) -> tuple[dict, int]:
    """Return both sides as warm graphs, each with enough calls for the baseline to fill a sample."""
    probe = graph_of(bar, sets, len(sets))
    seconds(probe, 3)
    once = seconds(probe, 5) / 5 / len(sets)
    count = max(len(sets), min(2000, math.ceil(SAMPLE_S / once)))
    graphs = {"A": graph_of(answer, sets, count), "B": graph_of(bar, sets, count)}
    for graph in graphs.values():
        seconds(graph, max(1, int(WARM_S / max(once * count, 1e-6) / 4)))
    return graphs, count


def paired(graphs: dict, count: int, quads: int) -> list[list[float]]:
    """Rows of two answer and two bar seconds per call, from random ABBA or BAAB quads."""
    order = random.SystemRandom()
    events = []
    for _ in range(quads):
        quad = []
        for letter in "ABBA" if order.random() < 0.5 else "BAAB":
            start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            start.record()
            graphs[letter].replay()
            end.record()
            quad.append((letter, start, end))
        events.append(quad)
    torch.cuda.synchronize()
    took = [
        {k: [s.elapsed_time(e) / 1e3 / count for x, s, e in quad if x == k] for k in "AB"} for quad in events
    ]
    return [[*t["A"], *t["B"]] for t in took]


LOAD = """
import random, time, torch
a = torch.randn(4096, 4096, device="cuda", dtype=torch.bfloat16)
a @ a
torch.cuda.synchronize()
print("busy", flush=True)
while True:
    for _ in range(random.randint(1, 20)):
        a @ a
    torch.cuda.synchronize()
    time.sleep(random.random() * 0.05)
"""


@contextmanager
def neighbour(wanted):
    """Another process that keeps the same GPU busy in bursts."""
    if not wanted:
        yield
        return
    process = subprocess.Popen([sys.executable, "-c", LOAD], stdout=subprocess.PIPE)
    try:
        process.stdout.readline()
        yield
    finally:
        process.kill()
        process.wait()
