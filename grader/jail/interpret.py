"""Mode "interpret": a kernel answer runs in Triton's interpreter on one case, metered."""

import inspect
import types

import interpreter
import kernel_objects
import meter as metering
import numpy as np
import plan as plans
import triton
import triton.language as tl
from answer_module import AnswerError, blame, load
from buffers import Buffer, contiguous
from frames import DTYPES
from triton.runtime import interpreter as stock

TL_TYPES = {
    "bool": tl.int1, "bf16": tl.bfloat16, "fp8e4nv": tl.float8e4nv, "fp8e5": tl.float8e5, "fp16": tl.float16,
    "fp32": tl.float32, "fp64": tl.float64, "i8": tl.int8, "i16": tl.int16, "i32": tl.int32, "i64": tl.int64,
    "u8": tl.uint8, "u16": tl.uint16, "u32": tl.uint32, "u64": tl.uint64,
}  # fmt: skip
SPREAD = 1 << 16  # most numbers sent back for one picture


def prepare() -> None:
    interpreter.install()
    metering.install()
    kernel_objects.prepare()


def launch_facts(task: dict) -> types.SimpleNamespace:
    """The `p` of launch(p): sizes, scalars, strides, dtypes and the number of multiprocessors."""
    facts = {**task["sizes"], "sm_count": task["sm_count"]}
    facts |= {name: value for name, (_, value) in task.get("scalars", {}).items()}
    for t in task["tensors"]:
        facts |= {f"stride_{t['name']}{axis}": s for axis, s in zip(t["axes"], t["strides"], strict=True)}
    facts["dtypes"] = {t["name"]: t["dtype"] for t in task["tensors"]}
    return types.SimpleNamespace(**facts)


def jit_functions(module) -> dict:
    kinds = (stock.InterpretedFunction, triton.runtime.JITFunction)
    return {name: value for name, value in vars(module).items() if isinstance(value, kinds)}


def make_plan(module, task: dict) -> plans.Plan:
    entry = getattr(module, task.get("entry", "launch"), None)
    if not callable(entry):
        raise AnswerError("launch", "the cell defines no function launch(p)", kind="MissingLaunch")
    with blame("launch"):
        value = entry(launch_facts(task))
        return plans.read(value, set(jit_functions(module)))


def argument_values(task: dict, plan: plans.Plan) -> dict:
    """Every name a kernel may take, with ("pointer", buffer) or ("scalar", type name, value)."""
    values = {name: ("scalar", "i64" if abs(v) >= 2**31 else "i32", v) for name, v in task["sizes"].items()}
    values |= {name: ("scalar", kind, v) for name, (kind, v) in task.get("scalars", {}).items()}
    scratch = [
        {
            "name": name,
            "dtype": s["dtype"],
            "shape": s["shape"],
            "strides": contiguous(s["shape"]),
            "axes": "0123456789"[: len(s["shape"])],
        }
        for name, s in plan.scratch.items()
    ]
    for t in [*task["tensors"], *scratch]:
        values[f"{t['name']}_ptr"] = ("pointer", t["name"], t["dtype"])
        values |= {
            f"stride_{t['name']}{axis}": ("scalar", "i32", s)
            for axis, s in zip(t["axes"], t["strides"], strict=True)
        }
    return values


def bind(kernel, step: dict, values: dict) -> dict:
    """The kernel's parameters by name; whatever is missing is said in one sentence."""
    names = [p for p in inspect.signature(kernel.fn).parameters]
    unknown = [n for n in names if n not in values and n not in step["constexprs"]]
    spare = [n for n in step["constexprs"] if n not in names]
    if unknown:
        raise AnswerError(
            "launch",
            f"kernel {step['kernel']} takes {', '.join(unknown)}, which is neither a constexpr of its step nor one of {', '.join(values)}",
            kind="UnknownParameter",
        )
    if spare:
        raise AnswerError(
            "launch",
            f"step gives the constexpr {', '.join(spare)}, which {step['kernel']} does not take",
            kind="UnknownParameter",
        )
    return {n: ("constexpr", step["constexprs"][n]) if n in step["constexprs"] else values[n] for n in names}


def handle(value, buffers: dict):
    """A bound argument as the interpreter wants it."""
    if value[0] == "constexpr":
        return value[1]
    if value[0] == "pointer":
        ty = tl.pointer_type(TL_TYPES[value[2]])
        return tl.tensor(stock.TensorHandle(np.array([buffers[value[1]].address], np.uint64), ty), ty)
    ty = TL_TYPES[value[1]]
    return tl.tensor(stock.TensorHandle(np.array([value[2]], DTYPES[value[1]]), ty), ty)


def run_step(kernel, step: dict, values: dict, buffers: dict, meter) -> None:
    arguments = {n: handle(v, buffers) for n, v in bind(kernel, step, values).items()}
    gx, gy, gz = step["grid"]
    fn = kernel.rewrite()
    scope = interpreter.patch_everywhere()
    stock.interpreter_builder.set_grid_dim(gx, gy, gz)
    meter.start_launch(step["kernel"], step["grid"])
    try:
        for linear in range(gx * gy * gz):
            program = (linear % gx, linear // gx % gy, linear // (gx * gy))
            stock.interpreter_builder.set_grid_idx(*program)
            meter.at_program(program, linear)
            try:
                with blame("kernel"), kernel_objects.running():
                    fn(**arguments)
            except AnswerError as error:
                error.report |= {"kernel": step["kernel"], "program": list(program)}
                raise
    finally:
        scope.restore()
        meter.end_launch()


def run(task: dict, arrays: dict) -> tuple[dict, dict]:
    module = load(task["source"], {"triton": triton, "tl": tl})
    plan = make_plan(module, task)
    if task.get("plan_only"):
        return {"plan": plan.as_json()}, {}
    buffers = {
        t["name"]: Buffer(t["name"], t["dtype"], t["shape"], t["strides"], arrays.get(t["name"]))
        for t in task["tensors"]
    }
    for name, s in plan.scratch.items():
        buffers[name] = Buffer(name, s["dtype"], s["shape"], contiguous(s["shape"]))
        buffers[name].fill(float(s["fill"]))
    tensors = [metering.Tensor(b.name, b.address, b.extent, b.dtype.itemsize) for b in buffers.values()]
    for tensor in tensors:
        tensor.memory = buffers[tensor.name].memory
    meter = metering.Meter(tensors, task["sm_count"], task.get("repeatable", True))
    metering.activate(meter)
    try:
        values, kernels = argument_values(task, plan), jit_functions(module)
        for step in plan.steps:
            run_step(kernels[step["kernel"]], step, values, buffers, meter)
    finally:
        metering.activate(None)
    return answer(task, plan, buffers, meter)


def answer(task, plan, buffers, meter) -> tuple[dict, dict]:
    outputs = {t["name"]: buffers[t["name"]].elements for t in task["tensors"] if t["role"] != "in"}
    touched = {}
    for tensor in meter.tensors:
        touched[f"loads:{tensor.name}"] = tensor.loads
        touched[f"stores:{tensor.name}"] = tensor.stores
    red = [b.name for b in buffers.values() if not b.red_zones_intact()]
    header = {
        "plan": plan.as_json(),
        "launches": meter.launches,
        "races": meter.races,
        "red_zones_broken": red,
    }
    return header, {**outputs, **touched}
