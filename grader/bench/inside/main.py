"""Judge one answer on the GPU: framed requests in, outputs and paired times out, until the pipe is closed.

python -m grader.bench.inside.main < requests > answers
"""

import importlib
import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import torch
import triton

from grader.bench import protocol
from grader.bench.inside import timing
from grader.bench.inside.buffers import InputSet
from grader.bench.inside.launching import (
    input_sets,
    launcher,
    load_kernels,
    outputs,
    repeats,
    same_everywhere,
    untouched,
)
from grader.bench.protocol import CompareRequest, Failed, Ran, RunRequest, Timed, TimeRequest, Trial
from grader.box.serve import frames
from grader.compiler.inside import stages

OF_THE_ANSWER = (stages.Refused, torch.cuda.OutOfMemoryError, triton.runtime.errors.OutOfResources)


@dataclass
class Launched:
    """One launch of a request's kernels that was run and looked at."""

    launch: Callable
    sets: list[InputSet]
    arrays: dict
    ran: Ran


def launched(request: RunRequest, contents: dict, rotating: bool) -> Launched:
    with tempfile.TemporaryDirectory() as folder:
        launch = launcher(request, load_kernels(request, Path(folder)))
    sets = input_sets(request, contents, rotating)
    launch(sets[0])
    torch.cuda.synchronize()
    arrays, changed = outputs(request, sets[0]), untouched(request, sets[0], contents)
    same = repeats(request, launch, sets[0], arrays, request.repeat) if request.repeat else None
    return Launched(launch, sets, arrays, Ran(**this_gpu(), changed=changed, repeats=same))


def run(request: RunRequest, contents: dict) -> Iterator[tuple[Ran, dict]]:
    one = launched(request, contents, rotating=False)
    yield one.ran, one.arrays


def timed(request: TimeRequest, contents: dict) -> Iterator[tuple[Timed, dict]]:
    one = launched(request, contents, rotating=True)
    yield beside(one, named_bar(request.bars, request.bar), request)[0], one.arrays


def compared(request: CompareRequest, contents: dict) -> Iterator[tuple[Timed | Trial, dict]]:
    """Report each trial as it ends."""
    one = launched(request, contents, rotating=True)
    with timing.neighbour(request.load):
        first, again = beside(one, one.launch, request)
        yield first, one.arrays
        for _ in range(request.trials - 1):
            yield Trial(again()), {}


def beside(one: Launched, bar: Callable, request: TimeRequest | CompareRequest) -> tuple[Timed, Callable]:
    """Time the launch paired with the baseline, and return a function that times both once more."""
    graphs, count = timing.graphs_for(one.launch, bar, one.sets)

    def again():
        return timing.paired(graphs, count, request.quads)

    quads = again()
    differing = not same_everywhere(request, one.launch, one.sets, one.arrays)
    return Timed(**vars(one.ran), quads=quads, sets=len(one.sets), differing=differing), again


OPERATIONS = {RunRequest: run, TimeRequest: timed, CompareRequest: compared}


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
    header, arrays = frames.unpack(block)
    request = protocol.request_of(header)
    contents = {name: a.tobytes() for name, a in arrays.items()}

    def packed(reply, found):
        return frames.pack({**protocol.reply_header(reply), "nonce": header["nonce"]}, found)

    try:
        for reply, found in OPERATIONS[type(request)](request, contents):
            yield packed(reply, found)
    except OF_THE_ANSWER as error:
        yield packed(Failed(f"{type(error).__name__}: {error}"[:1500]), {})


def main() -> int:
    out = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # whatever a library prints goes to stderr
    triton.set_allocator(lambda size, align, stream: torch.empty(size, device="cuda", dtype=torch.int8))
    out.write(protocol.READY)
    out.flush()
    while (block := frames.read_block(sys.stdin.buffer.read)) is not None:
        for answered in answers(block):
            frames.write_block(out, answered)
    return 0


if __name__ == "__main__":
    sys.exit(main())
