"""Launch an answer's kernels on its buffers and look at their output."""

import math
from pathlib import Path

import numpy as np
import torch
import triton

from grader.bench.inside.buffers import InputSet
from grader.bench.protocol import RunRequest
from grader.compiler.inside import stages

MOST_BYTES = 1 << 33
MOST_SETS = 64


def load_kernels(request: RunRequest, folder: Path) -> list:
    """IR text -> kernels, from the cache that the builder filled. No Python of the answer ever comes here."""
    kernels = []
    major, minor = torch.cuda.get_device_capability()
    for i, kernel in enumerate(step.kernel for step in request.steps):
        path, options = folder / f"step{i}.ttir", kernel.settings
        path.write_text(
            stages.compiled_up_to(kernel.ir, 10 * major + minor, options, "ttir")[0]["ttir"], encoding="utf-8"
        )
        kernels.append(triton.compile(str(path), options=options))
    return kernels


def launcher(request: RunRequest, kernels: list):
    """Return launch(input set), which runs every step of the plan with arguments bound by name."""
    numbers, refill = request.numbers, bool(request.scratch)

    def launch(inputs: InputSet) -> None:
        if refill:
            inputs.fill_scratch()
        for step, kernel in zip(request.steps, kernels, strict=True):
            arguments = [
                numbers[name] if name in numbers else inputs.views[name.removesuffix("_ptr")]
                for name in step.arguments
            ]
            kernel[step.grid](*arguments)

    return launch


def input_sets(request: RunRequest, contents: dict, rotating: bool) -> list[InputSet]:
    """Return one set, or, when rotating, enough copies to push each other out of the L2 three times over."""
    first = InputSet(request.tensors, request.scratch, contents)
    if not rotating:
        return [first]
    l2 = torch.cuda.get_device_properties(0).L2_cache_size
    wanted = min(
        MOST_SETS,
        max(2, math.ceil(3 * l2 / max(first.nbytes, 1)) + 1),
        max(2, MOST_BYTES // max(first.nbytes, 1)),
    )
    there = {name: first.guarded[name].bytes for name in contents}
    return [first] + [InputSet(request.tensors, request.scratch, there) for _ in range(wanted - 1)]


def outputs(request: RunRequest, inputs: InputSet) -> dict:
    found = {}
    for t in request.tensors:
        if t["role"] != "in":
            found[t["name"]] = inputs.guarded[t["name"]].bytes.cpu().numpy()
    return found


def untouched(request: RunRequest, inputs: InputSet, contents: dict) -> list[str]:
    """Names of inputs that changed and of tensors whose red zones were written."""
    bad = []
    for t in request.tensors:
        guarded = inputs.guarded[t["name"]]
        if not guarded.intact():
            bad.append(f"memory beside {t['name']}")
        if t["role"] == "in" and bytes(guarded.bytes.cpu().numpy().tobytes()) != contents[t["name"]]:
            bad.append(f"input {t['name']}")
    return bad


def repeats(request: RunRequest, launch, inputs: InputSet, first: dict, times: int) -> bool:
    """Return whether the same inputs give the same bits again."""
    for _ in range(times):
        inputs.fill_outputs()
        launch(inputs)
        torch.cuda.synchronize()
        again = outputs(request, inputs)
        if any(not np.array_equal(again[n], first[n]) for n in first):
            return False
    return True


def same_everywhere(request: RunRequest, launch, sets: list[InputSet], arrays: dict) -> bool:
    """Check on every rotating set that timed launches write the same as the judged launch."""
    for inputs in sets:
        inputs.fill_outputs()
        launch(inputs)
    torch.cuda.synchronize()
    return all(np.array_equal(outputs(request, s)[n], arrays[n]) for s in sets[1:4] for n in arrays)
