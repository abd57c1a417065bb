"""Worker of the machine's box: "run" interprets one case's texts on its inputs, "print" writes texts from their trees."""

from dataclasses import asdict
from math import prod

import numpy as np
from frames import DTYPES  # the box's own, on its path

from .limits import Limits
from .read import read
from .run import Launching
from .run import run as launch
from .storage import Storage, contiguous
from .tree import BadIR, Module
from .verify import verify
from .write import write

POISON = 0xFF  # what an output holds before anything is written: NaN in every float type


def prepare() -> None:
    np.seterr(all="ignore")


def run(task: dict, arrays: dict) -> tuple[dict, dict]:
    return {"run": run_case, "print": print_texts}[task["operation"]](task, arrays)


def module_of(text: str) -> Module:
    module = read(text)
    verify(module)
    return module


def told(error: BadIR) -> dict:
    return {"stage": "text", "kind": "BadIR", "message": str(error), "line": error.line or None}


def print_texts(task: dict, arrays: dict) -> tuple[dict, dict]:
    rows = []
    for text in task["texts"]:
        try:
            rows.append({"text": write(module_of(text))})
        except BadIR as error:
            rows.append({"error": told(error)})
    return {"texts": rows}, {}


def run_case(task: dict, arrays: dict) -> tuple[dict, dict]:
    try:
        modules = [module_of(text) for text in task["texts"]]
    except BadIR as error:
        return {"error": told(error)}, {}
    tensors = storages(task, arrays)
    steps = [
        Launching(modules[step["text"]], tuple(step["grid"]), [tuple(one) for one in step["arguments"]])
        for step in task["steps"]
    ]
    report = launch(
        steps,
        tensors,
        wave=task["sm_count"],
        programs=task["programs"],
        counting=task["counting"],
        repeatable=task["repeatable"],
        seed=task["seed"],
        limits=Limits(seconds=task["seconds"]),
    )
    found = {}
    for tensor in tensors[: len(task["tensors"])]:
        if tensor.role != "in":
            found[tensor.name] = tensor.elements
        found[f"loads:{tensor.name}"], found[f"stores:{tensor.name}"] = tensor.loads, tensor.stores
    header = asdict(report)
    return {name: value for name, value in header.items() if name != "error" or value}, found


def storages(task: dict, arrays: dict) -> list[Storage]:
    found = []
    for t in task["tensors"]:
        dtype, extent = DTYPES[t["dtype"]], extent_of(t["shape"], t["strides"])
        content = np.full(extent * dtype.itemsize, POISON, np.uint8).view(dtype)
        if t["role"] != "out" and extent:
            content[:] = arrays[t["name"]].reshape(-1)
        found.append(Storage(t["name"], len(found), content, t["role"], t["shape"], t["strides"], t["axes"]))
    for name, s in task["scratch"].items():
        content = np.full(prod(s["shape"]), float(s["fill"])).astype(DTYPES[s["dtype"]])
        strides = contiguous(s["shape"])
        found.append(Storage(name, len(found), content, "scratch", s["shape"], strides))
    return found


def extent_of(shape, strides) -> int:
    """Elements from the first to the last that a strided view owns."""
    if any(size == 0 for size in shape):
        return 0
    return 1 + sum((size - 1) * stride for size, stride in zip(shape, strides, strict=True))
