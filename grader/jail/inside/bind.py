"""Give launch(p) its facts, read its result, and bind its kernels' parameters to values."""

import inspect

import triton
from frames import DTYPES  # the box's own, on its path

from ..protocol import launch_facts, most_scratch, renamed
from . import plan as plans
from .answer_module import AnswerError, blame

MOST_NAMED = 12


class Facts:
    """Hold the facts that p.name reads. A missing name lists the existing ones."""

    def __init__(self, facts: dict):
        self.__dict__.update(facts)

    def __getattr__(self, name: str):
        if name.startswith("__"):  # copy and pickle ask for theirs
            raise AttributeError(name)
        if name.endswith("_ptr"):
            raise AttributeError(f"p tells sizes, not tensors: a kernel gets {name} by that parameter's name")
        sizes = ", ".join(f"p.{known}" for known in self.__dict__ if not known.startswith("stride_"))
        raise AttributeError(
            f"p has no {plans.meant(name, self.__dict__, 'p.')}; it has {sizes} and the strides"
        )


class Arguments(dict):
    """Hold arguments by name. A name of an earlier edition leads to today's and isn't listed."""

    def __init__(self, values: dict, earlier: dict[str, str]):
        super().__init__(values)
        self.earlier = {old: name for old, name in earlier.items() if old not in values}

    def today(self, name: str) -> str:
        return self.earlier.get(name, name)

    def __contains__(self, name) -> bool:
        return super().__contains__(self.today(name))

    def __getitem__(self, name):
        return super().__getitem__(self.today(name))


def kernels_of(module) -> dict:
    return {
        name: value for name, value in vars(module).items() if isinstance(value, triton.runtime.JITFunction)
    }


def make_plan(module, entry: str, case: dict) -> plans.Plan:
    launch = getattr(module, entry, None)
    if not callable(launch):
        raise AnswerError("launch", f"the cell defines no function {entry}(p)", kind="MissingLaunch")
    with blame("launch"):
        value = launch(Facts(launch_facts(**case)))
    tuned = {
        name for name, value in vars(module).items() if type(value).__name__ in ("Autotuner", "Heuristics")
    }
    try:
        most = most_scratch(case["tensors"], DTYPES)
        plan = plans.read(value, set(kernels_of(module)), tuned, case["packs"], most)
    except plans.BadPlan as bad:
        raise AnswerError("launch", str(bad), kind="BadPlan") from None
    _names_of_its_own("scratch", plan.scratch.keys(), {t["name"] for t in case["tensors"]})
    _names_of_its_own(
        "packed arrays", plan.packed, plan.scratch.keys() | {t["name"] for t in case["tensors"]}
    )
    exchange(plan, case["instead"])
    return plan


def _names_of_its_own(what: str, names, taken) -> None:
    if again := sorted(set(names) & set(taken)):
        message = f"{what} must have names of their own, got {', '.join(again)} again"
        raise AnswerError("launch", message, kind="BadPlan")


def exchange(plan: plans.Plan, instead: dict) -> None:
    """Replace constants of launch(p), by name [old, new], to see whether the case would be right with them."""
    for constants in (step["constexprs"] for step in plan.steps):
        constants |= {name: new for name, (old, new) in instead.items() if constants.get(name) == old}


def argument_values(case: dict, plan: plans.Plan) -> Arguments:
    """Every name a kernel may take, with ("pointer", tensor, dtype) or ("scalar", type name, value)."""
    values = {name: ("scalar", "i64" if abs(v) >= 2**31 else "i32", v) for name, v in case["sizes"].items()}
    values |= {name: ("scalar", kind, v) for name, (kind, v) in case["scalars"].items()}
    own = [
        {
            "name": name,
            "dtype": s["dtype"],
            "strides": contiguous(s["shape"]),
            "axes": "0123456789"[: len(s["shape"])],
        }
        for name, s in [*plan.scratch.items(), *plan.packed.items()]
    ]
    for t in [*case["tensors"], *own]:
        values[f"{t['name']}_ptr"] = ("pointer", t["name"], t["dtype"])
        for axis, stride in zip(t["axes"], t["strides"], strict=True):
            values[f"stride_{t['name']}{axis}"] = ("scalar", "i64" if stride >= 2**31 else "i32", stride)
    return Arguments(values, renamed(case["tensors"]))


def contiguous(shape) -> tuple[int, ...]:
    strides, step = [], 1
    for size in reversed(shape):
        strides.append(step)
        step *= max(1, size)
    return tuple(reversed(strides))


def unbound(kernel: str, unknown: list[str], values: dict, spare: list[str]) -> str:
    """One sentence on the parameters that nothing gives a value to, with the names that come nearest."""
    names = ", ".join(plans.meant(name, [*spare, *values]) for name in unknown)
    said = (
        f"kernel {kernel} takes {names}, which is neither a constexpr of its step nor an argument by its name"
    )
    pointers = [name for name in values if name.endswith("_ptr")]
    others = [name for name in values if not name.endswith("_ptr") and not name.startswith("stride_")]
    return f"{said}; arguments are {', '.join([*pointers, *others][:MOST_NAMED])} and the strides"


def bind(kernel, step: dict, values: dict) -> dict:
    """Bind the kernel's parameters by name. One sentence names everything that is missing."""
    names = list(inspect.signature(kernel.fn).parameters)
    unknown = [n for n in names if n not in values and n not in step["constexprs"]]
    spare = [n for n in step["constexprs"] if n not in names]
    if unknown:
        raise AnswerError("launch", unbound(step["kernel"], unknown, values, spare), kind="UnknownParameter")
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
    """Mark the parameters as Triton's own launch would. Anything unmarked becomes a number at run time."""
    return next(parameter.is_constexpr for parameter in kernel.params if parameter.name == name)
