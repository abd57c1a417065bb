"""What launch(p) is told, what it says, and which values its kernels' parameters stand for."""

import inspect
import types

import triton

from . import plan as plans
from .answer_module import AnswerError, blame


def launch_facts(case: dict) -> types.SimpleNamespace:
    """The `p` of launch(p): sizes, scalars, strides, dtypes and the number of multiprocessors."""
    facts = {**case["sizes"], "sm_count": case["sm_count"]}
    facts |= {name: value for name, (_, value) in case["scalars"].items()}
    for t in case["tensors"]:
        facts |= {f"stride_{t['name']}{axis}": s for axis, s in zip(t["axes"], t["strides"], strict=True)}
    facts["dtypes"] = {t["name"]: t["dtype"] for t in case["tensors"]}
    return types.SimpleNamespace(**facts)


def kernels_of(module) -> dict:
    return {
        name: value for name, value in vars(module).items() if isinstance(value, triton.runtime.JITFunction)
    }


def make_plan(module, entry: str, case: dict) -> plans.Plan:
    launch = getattr(module, entry, None)
    if not callable(launch):
        raise AnswerError("launch", f"the cell defines no function {entry}(p)", kind="MissingLaunch")
    with blame("launch"):
        value = launch(launch_facts(case))
    tuned = {
        name for name, value in vars(module).items() if type(value).__name__ in ("Autotuner", "Heuristics")
    }
    try:
        return plans.read(value, set(kernels_of(module)), tuned)
    except plans.BadPlan as bad:
        raise AnswerError("launch", str(bad), kind="BadPlan") from None


def argument_values(case: dict, plan: plans.Plan) -> dict:
    """Every name a kernel may take, with ("pointer", tensor, dtype) or ("scalar", type name, value)."""
    values = {name: ("scalar", "i64" if abs(v) >= 2**31 else "i32", v) for name, v in case["sizes"].items()}
    values |= {name: ("scalar", kind, v) for name, (kind, v) in case["scalars"].items()}
    scratch = [
        {
            "name": name,
            "dtype": s["dtype"],
            "strides": contiguous(s["shape"]),
            "axes": "0123456789"[: len(s["shape"])],
        }
        for name, s in plan.scratch.items()
    ]
    for t in [*case["tensors"], *scratch]:
        values[f"{t['name']}_ptr"] = ("pointer", t["name"], t["dtype"])
        for axis, stride in zip(t["axes"], t["strides"], strict=True):
            values[f"stride_{t['name']}{axis}"] = ("scalar", "i64" if stride >= 2**31 else "i32", stride)
    return values


def contiguous(shape) -> tuple[int, ...]:
    strides, step = [], 1
    for size in reversed(shape):
        strides.append(step)
        step *= max(1, size)
    return tuple(reversed(strides))


def bind(kernel, step: dict, values: dict) -> dict:
    """The kernel's parameters by name; whatever is missing is said in one sentence."""
    names = list(inspect.signature(kernel.fn).parameters)
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
    unmarked = [n for n in names if n in step["constexprs"] and not _marked(kernel, n)]
    if unmarked:
        raise AnswerError(
            "launch",
            f"step gives the constexpr {', '.join(unmarked)}, which {step['kernel']} takes as an ordinary argument: write {unmarked[0]}: tl.constexpr in its signature",
            kind="UnmarkedConstexpr",
        )
    return {n: ("constexpr", step["constexprs"][n]) if n in step["constexprs"] else values[n] for n in names}


def _marked(kernel, name: str) -> bool:
    """As a launch of Triton's own sees it: whatever is not marked becomes a number that the kernel is told as it runs."""
    return next(parameter.is_constexpr for parameter in kernel.params if parameter.name == name)
