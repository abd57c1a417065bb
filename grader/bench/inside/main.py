"""One answer on the GPU: framed requests in, outputs and paired times out, until the pipe is closed.

python -m grader.bench.inside.main < requests > answers
"""

import importlib
import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import torch
import triton

from grader.bench.inside import timing
from grader.bench.inside.launching import (
    input_sets,
    launcher,
    load_kernels,
    outputs,
    repeats,
    same_everywhere,
    untouched,
)
from grader.box.serve import frames
from grader.compiler.inside import stages

OF_THE_ANSWER = (stages.Refused, torch.cuda.OutOfMemoryError, triton.runtime.errors.OutOfResources)


def serve(request: dict, contents: dict) -> Iterator[tuple[dict, dict]]:
    """What one launch wrote, and its times where a bar is named; then further trials one by one."""
    with tempfile.TemporaryDirectory() as folder:
        launch = launcher(request, load_kernels(request, Path(folder)))
    sets = input_sets(request, contents)
    launch(sets[0])
    torch.cuda.synchronize()
    arrays = outputs(request, sets[0])
    report = {**this_gpu(), "changed": untouched(request, sets[0], contents)}
    if request.get("repeat"):
        report["repeats"] = repeats(request, launch, sets[0], arrays, request["repeat"])
    if not request.get("bar"):
        yield report, arrays
        return
    # "self" is the answer once more, which shows what the clock itself is worth
    bar = launch if request["bar"] == "self" else named_bar(request["bars"], request["bar"])
    trials = request.get("trials", 0)
    with timing.neighbour(request.get("load")):
        graphs, count = timing.graphs_for(launch, bar, sets)
        report |= {"quads": timing.paired(graphs, count, request["quads"]), "sets": len(sets)}
        report["differing"] = not same_everywhere(request, launch, sets, arrays)
        yield {**report, "more": trials}, arrays
        for left in reversed(range(trials)):
            yield {"quads": timing.paired(graphs, count, request["quads"]), "more": left}, {}


def named_bar(module: str, name: str):
    """A bar of the topic's own, by the module that the referee names."""
    bar = importlib.import_module(module).BARS[name]
    return lambda inputs: bar(inputs.views)


def this_gpu() -> dict:
    properties = torch.cuda.get_device_properties(0)
    return {
        "gpu": properties.name,
        "sms": properties.multi_processor_count,
        "torch": torch.__version__,
        "triton": triton.__version__,
    }


def answers(block: bytes) -> Iterator[bytes]:
    request, arrays = frames.unpack(block)
    contents = {name: a.tobytes() for name, a in arrays.items()}
    try:
        for report, found in serve(request, contents):
            yield frames.pack({**report, "nonce": request["nonce"]}, found)
    except OF_THE_ANSWER as error:
        failed = {"failed": f"{type(error).__name__}: {error}"[:1500], "nonce": request["nonce"]}
        yield frames.pack(failed, {})


def main() -> int:
    out = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # whatever a library prints goes to stderr
    triton.set_allocator(lambda size, align, stream: torch.empty(size, device="cuda", dtype=torch.int8))
    while (block := frames.read_block(sys.stdin.buffer.read)) is not None:
        for answered in answers(block):
            frames.write_block(out, answered)
    return 0


if __name__ == "__main__":
    sys.exit(main())
