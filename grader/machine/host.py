"""The referee's end of the machine: one case's texts and inputs go in, values and counts come out."""

import numpy as np

from grader.box import warm

MACHINE = warm.Worker("machine", "machine.inside.main")
LIMITS = warm.Limits(wall_s=120.0, cpu_s=40, memory_bytes=6 << 30, answer_bytes=1 << 30)
PRINT_LIMITS = warm.Limits(wall_s=60.0, cpu_s=20, memory_bytes=2 << 30, answer_bytes=64 << 20)
KINDS = {"fp32": "fp32", "i32": "i32", "i64": "i64"}


def run_case(texts, plan, tensors, *, values: dict, level=None, limits=LIMITS, **how) -> warm.Outcome:
    """`tensors` are placed ones, `values` the numbers that arguments stand for by name: (type, value)."""
    used = sorted({step.text for step in plan.steps})
    task = {
        "operation": "run",
        "texts": [texts[number] for number in used],
        "steps": [_step(step, used, values) for step in plan.steps],
        "tensors": [one.as_task() for one in tensors],
        "scratch": plan.scratch,
        **how,
    }
    arrays = {one.spec.name: one.storage for one in tensors if one.spec.role != "out" and one.storage.size}
    return warm.programs(MACHINE, level).ask(task, arrays, limits)


def _step(step, used: list[int], values: dict) -> dict:
    arguments = [
        ["tensor", name.removesuffix("_ptr")] if name not in values else list(values[name])
        for name in step.arguments
    ]
    return {
        "text": used.index(step.text),
        "kernel": step.name,
        "grid": list(step.grid),
        "arguments": arguments,
    }


def print_texts(texts: list[str], level: int | None = None) -> warm.Outcome:
    """Each text as the machine prints it from its own tree, or why it is none that an answer may hold."""
    return warm.programs(MACHINE, level).ask({"operation": "print", "texts": list(texts)}, {}, PRINT_LIMITS)


def numbers(case, plan, tensors) -> dict:
    """What each argument that is no pointer stands for: sizes, scalars and strides, scratch's among them."""
    found = {name: ("i64" if abs(v) >= 2**31 else "i32", int(v)) for name, v in case.sizes.items()}
    found |= {
        name: ("fp32", float(v)) if isinstance(v, float) else ("i32", int(v))
        for name, v in case.scalars.items()
    }
    strides = {one.spec.name: (one.spec.axes, one.strides) for one in tensors}
    for name, row in plan.scratch.items():
        steps = np.cumprod([1, *reversed(row["shape"][1:])])[::-1] if row["shape"] else ()
        strides[name] = ("0123456789", [int(s) for s in steps])
    for name, (axes, steps) in strides.items():
        for axis, stride in zip(axes, steps, strict=False):
            found[f"stride_{name}{axis}"] = ("i64" if stride >= 2**31 else "i32", int(stride))
    return found
