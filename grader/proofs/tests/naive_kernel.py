"""The naive grader's half for kernels: torch tensors, the stock interpreter, one process for everything."""

import os
import time
from types import SimpleNamespace

os.environ["TRITON_INTERPRET"] = "1"
import numpy as np
import torch
import triton
import triton.language as tl

from grader.proofs.tests import naive

LONGEST_S = 4.0


def kernel_passes(question, source: str) -> bool:
    space = {"triton": triton, "tl": tl, "math": __import__("math")}
    path = os.path.abspath("answer.py")
    with open(path, "w") as file:
        file.write(source)
    exec(compile(source, path, "exec"), space)
    for case in question.public:
        inputs = {
            n: torch.from_numpy(x)
            for n, x in question.inputs(case, np.random.default_rng(0)).items()
            if x.dtype != "bfloat16"
        }
        if len(inputs) < sum(t.role == "in" for t in question.tensors) or case.layout:
            continue  # bf16 and strides are for others to test
        outputs = {
            t.name: torch.zeros(t.sizes(case.sizes), dtype=torch.float16)
            for t in question.tensors
            if t.role == "out"
        }
        facts = {
            f"stride_{t.name}{a}": s
            for t in question.tensors
            for a, s in zip(t.axes, (inputs | outputs)[t.name].stride(), strict=True)
        }
        facts |= case.sizes | case.scalars
        for _ in range(2):  # once to warm up
            started = time.perf_counter()
            run(space[question.entry], facts, inputs | outputs, space)
            took = time.perf_counter() - started
        wanted = question.reference({n: x.numpy() for n, x in inputs.items()}, case)
        if took > LONGEST_S or not all(
            naive.same(outputs[n].numpy().astype(float), w) for n, w in wanted.items()
        ):
            return False
    return True


def run(launch, facts: dict, tensors: dict, space: dict) -> None:
    plan = launch(SimpleNamespace(**facts, sm_count=16, dtypes={n: "fp16" for n in tensors}))
    scratch = {
        n: torch.full(s if isinstance(s, tuple) else (s,), float(f), dtype=torch.float32)
        for n, (s, _, f) in plan.get("scratch", {}).items()
    }
    values = facts | {f"{n}_ptr": t for n, t in (tensors | scratch).items()}
    for step in plan["steps"]:
        kernel, constants = step["kernel"], step.get("constexprs", {})
        arguments = {n: values[n] for n in kernel.arg_names if n not in constants}
        kernel[step["grid"]](**arguments, **constants)
