"""One answer on the GPU: framed requests in, outputs and paired times out.

python -m grader.bench.main < request > answer
"""

import math
import os
import random
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import torch
import triton

from grader.bench import ir
from grader.bench.bars import BARS
from grader.bench.buffers import InputSet
from grader.jail import frames

MOST_BYTES = 1 << 33
MOST_SETS = 64
SAMPLE_S = 1e-3
WARM_S = 0.3


def load_kernels(request: dict, folder: Path) -> list:
    """IR text -> compiled kernels. No Python of the answer ever comes here."""
    kernels = []
    for i, step in enumerate(request["steps"]):
        ir.hold(step["ir"])
        path = folder / f"step{i}.ttir"
        path.write_text(step["ir"])
        options = {"num_warps": step["num_warps"], "num_stages": step["num_stages"]}
        kernels.append(triton.compile(str(path), options=options))
    return kernels


def launcher(request: dict, kernels: list):
    """launch(input set): every step of the plan, with arguments bound by name."""
    values = request["scalars"]
    refill = bool(request["scratch"])

    def launch(inputs: InputSet) -> None:
        if refill:
            inputs.fill_scratch()
        for step, kernel in zip(request["steps"], kernels, strict=True):
            arguments = [
                inputs.views[n.removesuffix("_ptr")] if n.endswith("_ptr") and n not in values else values[n]
                for n in step["arguments"]
            ]
            kernel[tuple(step["grid"])](*arguments)

    return launch


def input_sets(request: dict, contents: dict) -> list[InputSet]:
    """As many copies as it takes to push each other out of the L2 three times over."""
    first = InputSet(request["tensors"], request["scratch"], contents)
    if not request.get("bar"):
        return [first]
    l2 = torch.cuda.get_device_properties(0).L2_cache_size
    wanted = min(
        MOST_SETS,
        max(2, math.ceil(3 * l2 / max(first.nbytes, 1)) + 1),
        max(2, MOST_BYTES // max(first.nbytes, 1)),
    )
    return [first] + [InputSet(request["tensors"], request["scratch"], contents) for _ in range(wanted - 1)]


def outputs(request: dict, inputs: InputSet) -> dict:
    found = {}
    for t in request["tensors"]:
        if t["role"] != "in":
            found[t["name"]] = inputs.guarded[t["name"]].bytes.cpu().numpy()
    return found


def untouched(request: dict, inputs: InputSet, contents: dict) -> list[str]:
    """Names of inputs that changed and of tensors whose red zones were written."""
    bad = []
    for t in request["tensors"]:
        guarded = inputs.guarded[t["name"]]
        if not guarded.intact():
            bad.append(f"memory beside {t['name']}")
        if t["role"] == "in" and bytes(guarded.bytes.cpu().numpy().tobytes()) != contents[t["name"]]:
            bad.append(f"input {t['name']}")
    return bad


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
    """Both sides as graphs of as many calls as the bar needs to fill a sample, warm."""
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


def serve(request: dict, contents: dict) -> tuple[dict, dict]:
    triton.set_allocator(lambda size, align, stream: torch.empty(size, device="cuda", dtype=torch.int8))
    with tempfile.TemporaryDirectory() as folder:
        kernels = load_kernels(request, Path(folder))
        launch = launcher(request, kernels)
        sets = input_sets(request, contents)
        launch(sets[0])
        torch.cuda.synchronize()
        arrays = outputs(request, sets[0])
        report = {"changed": untouched(request, sets[0], contents)}
        if request.get("repeat"):
            report["repeats"] = repeats(request, launch, sets[0], arrays, request["repeat"])
        if request.get("bar"):
            report |= timed(request, launch, sets, arrays)
    properties = torch.cuda.get_device_properties(0)
    report |= {
        "gpu": properties.name,
        "sms": properties.multi_processor_count,
        "torch": torch.__version__,
        "triton": triton.__version__,
    }
    return report, arrays


def repeats(request, launch, inputs: InputSet, first: dict, times: int) -> bool:
    """Whether the same inputs give the same bits again."""
    for _ in range(times):
        for t in request["tensors"]:
            if t["role"] == "out":
                inputs.guarded[t["name"]].poison()
        launch(inputs)
        torch.cuda.synchronize()
        again = outputs(request, inputs)
        if any(not np.array_equal(again[n], first[n]) for n in first):
            return False
    return True


def timed(request, launch, sets, arrays) -> dict:
    """Times against the bar; "self" is the answer once more, which shows what the clock itself is worth."""
    bar = launch if request["bar"] == "self" else lambda inputs: BARS[request["bar"]](inputs.views)
    with neighbour(request.get("loaded")):
        graphs, count = graphs_for(launch, bar, sets)
        trials = [paired(graphs, count, request["quads"]) for _ in range(request.get("trials", 1))]
    for inputs in sets:
        for t in request["tensors"]:
            if t["role"] == "out":
                inputs.guarded[t["name"]].poison()
        launch(inputs)
    torch.cuda.synchronize()
    # what the timed launches write must be what the judged one wrote, on every rotating set
    differing = sum(
        any(not np.array_equal(outputs(request, s)[n], arrays[n]) for n in arrays) for s in sets[1:4]
    )
    return {"quads": trials[0], "trials": trials[1:], "sets": len(sets), "differing": differing}


LOAD = """
import random, time, torch
a = torch.randn(4096, 4096, device="cuda", dtype=torch.bfloat16)
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
    process = subprocess.Popen([sys.executable, "-c", LOAD])
    time.sleep(12)
    try:
        yield
    finally:
        process.kill()
        process.wait()


def answer(block: bytes) -> bytes:
    request, arrays = frames.unpack(block)
    contents = {name: a.tobytes() for name, a in arrays.items()}
    try:
        report, found = serve(request, contents)
    except (ir.BadIR, torch.cuda.OutOfMemoryError, triton.runtime.errors.OutOfResources) as error:
        report, found = {"failed": f"{type(error).__name__}: {error}"[:1500]}, {}
    return frames.pack({**report, "nonce": request["nonce"]}, found)


def main() -> int:
    out = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # whatever a library prints goes to stderr
    for block in frames.split(sys.stdin.buffer.read()):
        frames.write_block(out, answer(block))
    return 0


if __name__ == "__main__":
    sys.exit(main())
