"""Define the messages to the jail and the checks of its replies: plain data of known kinds, and nothing else."""

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

MOST_TEXT_BYTES, MOST_TEXTS_BYTES, MOST_TEXTS = 1 << 20, 10 << 20, 160
MOST_STEPS, MOST_SCRATCH, MOST_SCRATCH_BYTES, MOST_PROGRAMS = 16, 16, 1 << 28, 1 << 24
MOST_ALONG = (
    MOST_PROGRAMS,
    65_535,
    65_535,
)  # along each axis of a grid, as CUDA has it for the second and third
SCRATCH_OF_LARGE = 4  # times the bytes of all tensors of a case, if that is more
WARPS, MOST_STAGES = (1, 2, 4, 8, 16, 32), 8
MOST_FACTS, LONGEST_FACT = 4000, 220  # of a plan, and characters of one or of its name
DEEPEST = 64  # lists in lists
NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,99}")
FILL = re.compile(r"-?(?:inf|\d+(?:\.\d+)?(?:e[+-]?\d+)?)")


class BadReply(ValueError):
    """Say that the jail's answer, which untrusted code wrote, doesn't have the agreed form."""


@dataclass(frozen=True)
class Kernel:
    """One step of a plan: which text runs on which grid, with which arguments by name."""

    name: str
    text: int
    arguments: tuple[str, ...]
    grid: tuple[int, int, int]
    num_warps: int
    num_stages: int
    constexprs: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Plan:
    scratch: dict  # name -> {"shape", "dtype", "fill"}
    steps: tuple[Kernel, ...]
    packed: dict = field(
        default_factory=dict
    )  # name -> {"shape", "dtype"} of arrays that the answer prepares from weights


@dataclass(frozen=True)
class Lowered:
    """Every case's plan or error, and each distinct kernel's text. From here on nothing changes them."""

    plans: tuple  # of Plan or, where it went wrong, of an error as a dict
    printed: tuple[str, ...]
    texts: tuple[str, ...]


@dataclass(frozen=True)
class Made:
    """Hold the arrays that the answer's own function made of one case's weights, under its plan's names, or an error.
    `changed` lists the arguments that it changed in place, by number, and `line` is where, if that is known."""

    arrays: dict = field(default_factory=dict)
    error: dict | None = None
    printed: str = ""
    changed: tuple[int, ...] = ()
    line: int | None = None


def joined(parts: list[Lowered]) -> Lowered:
    """Several replies as one, each text once."""
    texts = tuple(dict.fromkeys(text for one in parts for text in one.texts))
    plans = tuple(_moved(plan, one.texts, texts) for one in parts for plan in one.plans)
    return Lowered(plans, tuple(said for one in parts for said in one.printed), texts)


def _moved(plan, of: tuple[str, ...], texts: tuple[str, ...]):
    if not isinstance(plan, Plan):
        return plan
    return replace(plan, steps=tuple(replace(s, text=texts.index(of[s.text])) for s in plan.steps))


def nothing(outcome, cases: list) -> Lowered:
    """Return the failure of a whole request, repeated for each of its cases."""
    return Lowered((outcome.error,) * len(cases), ("",) * len(cases), ())


@dataclass(frozen=True)
class Packs:
    """The limits of what an answer may make of weights: by which function of its cell, how many arrays, in how many
    bytes."""

    entry: str
    most_arrays: int
    most_bytes: int


@dataclass(frozen=True, kw_only=True)
class ToldCase:
    """All that an answer learns of a case: sizes, and the memory layout of tensors."""

    sizes: dict[str, int]
    scalars: dict[str, tuple[str, float]]  # name -> (type, value)
    sm_count: int
    tensors: tuple[dict, ...]  # name, dtype, shape, strides, axes, role
    packs: Packs | None = None  # where the cell prepares weights
    instead: dict[str, tuple[int, int]] = field(default_factory=dict)  # (launch(p)'s constant, another one)

    def plain(self) -> dict:
        return {**vars(self), "packs": vars(self.packs) if self.packs else None}


@dataclass(frozen=True)
class LowerRequest:
    """Request an answer's plan and texts for each case."""

    source: str
    entry: str
    cases: list[ToldCase]
    target: int

    def task(self) -> dict:
        return {"operation": "lower", **vars(self), "cases": [case.plain() for case in self.cases]}


@dataclass(frozen=True)
class TextsRequest:
    """Request the plan and the texts of one case for each of several texts of a cell."""

    sources: list[str]
    entry: str
    case: ToldCase
    target: int

    def task(self) -> dict:
        more = {"source": self.sources[0], "cases": [self.case.plain()]}
        return {
            "operation": "texts",
            "sources": self.sources,
            "entry": self.entry,
            "target": self.target,
            **more,
        }


@dataclass(frozen=True)
class PlanRequest:
    """Request what an answer plans for each of many cases, most of which are never judged."""

    source: str
    entry: str
    cases: list[ToldCase]

    def task(self) -> dict:
        return {"operation": "plan", **vars(self), "cases": [case.plain() for case in self.cases]}


@dataclass(frozen=True)
class Planned:
    """Hold what a plan says, by name and as text, and the programs of each of its steps."""

    facts: dict[str, str] = field(default_factory=dict)
    programs: tuple[int, ...] = ()


@dataclass(frozen=True)
class PackCase:
    """Weights as arguments, {"array": name} or {"value": plain}, and the arrays that the plan announces. An array that
    isn't row by row in memory has "strides" in elements."""

    arguments: list[dict]
    packed: dict  # name -> {"shape", "dtype"}


@dataclass(frozen=True)
class PackRequest:
    """A request to the cell's own function for its arrays of each case's weights, once its texts are fixed."""

    source: str
    entry: str
    cases: list[PackCase]

    def task(self) -> dict:
        return {"operation": "pack", **vars(self), "cases": [dict(vars(case)) for case in self.cases]}


def lowered(header: dict, cases: list[ToldCase], dtypes: dict) -> Lowered:
    """Read the reply to a LowerRequest and check every field. `dtypes`: name -> numpy dtype."""
    rows, texts = header.get("cases"), header.get("texts")
    need(isinstance(rows, list) and len(rows) == len(cases), "a row for each case")
    need(isinstance(texts, list) and len(texts) <= MOST_TEXTS, "a list of texts")
    need(all(isinstance(t, str) and len(t) <= MOST_TEXT_BYTES for t in texts), "texts of at most 1 MiB")
    need(sum(map(len, texts)) <= MOST_TEXTS_BYTES, "texts of at most 10 MiB in all")
    plans = tuple(
        _plan_or_error(row, case, len(texts), dtypes) for row, case in zip(rows, cases, strict=True)
    )
    printed = tuple(str(row.get("printed") or "")[:20_000] for row in rows)
    return Lowered(plans, printed, tuple(texts))


@dataclass(frozen=True)
class CallRequest:
    """Calls of one function of a numpy answer. An argument is {"array": name} or {"value": plain}."""

    source: str
    entry: str
    calls: list[list[dict]]
    watched: bool = (
        False  # whether to report the line that returns, and the values of the function's names there
    )

    def task(self) -> dict:
        return dict(vars(self))


@dataclass(frozen=True)
class VariantsRequest:
    """The same calls of several sources."""

    sources: list[str]
    entry: str
    calls: list[list[dict]]

    def task(self) -> dict:
        return dict(vars(self))


def variants(request: VariantsRequest, header: dict, arrays: dict) -> list[list | None]:
    """Read each source's encoded results, or None if it raised."""
    found = header.get("variants")
    need(isinstance(found, list) and len(found) == len(request.sources), "results for each source")
    for row in found:
        need(
            row is None or isinstance(row, list) and len(row) == len(request.calls), "a result for each call"
        )
        for one in row or ():
            require_encoded(one, arrays)
    return found


@dataclass(frozen=True)
class Returned:
    """Where a call ended: the line of its return, and the numbers that names of the function held there, as text."""

    line: int
    names: tuple[tuple[str, str], ...] = ()


MOST_ARGUMENTS = 16  # of the function on weights
MOST_NAMES, LONGEST_NUMBER = 5, 24


def returned(header: dict) -> list[Returned]:
    """Read where each watched call ended. Raise BadReply if the reply says something else."""
    found = header.get("returned")
    need(isinstance(found, list), "a list of where calls ended")
    rows = []
    for row in found:
        need(isinstance(row, dict) and isinstance(row.get("line"), int), "a line for each call that ended")
        names = row.get("names")
        need(isinstance(names, list) and len(names) <= MOST_NAMES, "a short list of names")
        for pair in names:
            need(
                isinstance(pair, list) and len(pair) == 2 and all(isinstance(one, str) for one in pair),
                "names with a number",
            )
            need(
                NAME.fullmatch(pair[0]) and len(pair[1]) <= LONGEST_NUMBER and _is_number(pair[1]),
                "names with a number",
            )
        rows.append(Returned(row["line"], tuple(map(tuple, names))))
    return rows


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return text in ("True", "False")
    return True


def require_results(request: CallRequest, header: dict, arrays: dict) -> None:
    """Read each call's encoded result. Every part must be of a known kind, and its arrays present."""
    found = header.get("results")
    need(isinstance(found, list) and len(found) == len(request.calls), "a result for each call")
    changed = header.get("inputs_changed")
    need(
        isinstance(changed, list) and all(isinstance(one, str) for one in changed), "the inputs that changed"
    )
    for one in found:
        require_encoded(one, arrays)


def require_encoded(value, arrays: dict) -> None:
    _encoded(value, arrays, DEEPEST)


def _encoded(value, arrays: dict, depth: int) -> None:
    need(depth and isinstance(value, dict) and len(value) == 1, "results of one kind each")
    ((kind, inner),) = value.items()
    if kind == "list":
        need(isinstance(inner, list), "lists that are lists")
    elif kind == "dict":
        need(isinstance(inner, dict), "dicts that are dicts")
        inner = list(inner.values())
    elif kind == "plain":
        need(inner is None or isinstance(inner, str), "plain values that are text or nothing")
    else:
        need(kind == "array" and isinstance(inner, str) and inner in arrays, "arrays that came")
    for one in inner if isinstance(inner, list) else ():
        _encoded(one, arrays, depth - 1)


def need(condition, what: str) -> None:
    if not condition:
        raise BadReply(f"the jail's answer must hold {what}")


def whole_number(value, low: int, high: int) -> int:
    need(
        isinstance(value, int) and not isinstance(value, bool) and low <= value <= high,
        f"a whole number from {low} to {high}",
    )
    return value


def most_scratch(tensors: Iterable[dict], dtypes: dict) -> int:
    """Return the bytes of scratch that a plan may ask for."""
    moved = sum(math.prod(t["shape"]) * dtypes[t["dtype"]].itemsize for t in tensors)
    return max(MOST_SCRATCH_BYTES, SCRATCH_OF_LARGE * moved)


def name(value) -> str:
    need(isinstance(value, str) and NAME.fullmatch(value), "names that are identifiers")
    return value


def _plan_or_error(row, case: ToldCase, texts: int, dtypes: dict):
    need(isinstance(row, dict), "a row for each case")
    if "error" in row:
        from grader.box.warm import clean_error

        return clean_error(row["error"])
    plan, kernels = row.get("plan"), row.get("kernels")
    need(isinstance(plan, dict) and isinstance(plan.get("steps"), list), "a plan with steps")
    steps = plan["steps"]
    need(
        1 <= len(steps) <= MOST_STEPS and isinstance(kernels, list) and len(kernels) == len(steps),
        "a kernel for each step",
    )
    scratch = _scratch(plan.get("scratch"), dtypes, most_scratch(case.tensors, dtypes))
    packed = _packed(plan, case, dtypes)
    tensors = {t["name"] for t in case.tensors}
    need(not scratch.keys() & tensors, "scratch of names of its own")
    need(not packed.keys() & (scratch.keys() | tensors), "packed arrays with names of their own")
    known = known_names(case, {**scratch, **packed})
    of_steps = tuple(_step(s, k, texts, known) for s, k in zip(steps, kernels, strict=True))
    return Plan(scratch, of_steps, packed)


def _packed(plan: dict, case: ToldCase, dtypes: dict) -> dict:
    """Read the arrays that a plan makes, within the bytes of this case, or nothing if the question allows none."""
    rows, packs = plan.get("packed") or {}, case.packs
    need(isinstance(rows, dict) and bool(rows) == bool(packs), "packed arrays where they are asked for")
    if not packs:
        return {}
    need(len(rows) <= packs.most_arrays, "few packed arrays")
    found = {name(key): _array(row, dtypes) for key, row in rows.items()}
    total = sum(math.prod(row["shape"]) * dtypes[row["dtype"]].itemsize for row in found.values())
    need(total <= packs.most_bytes, "packed arrays within their bytes")
    return found


def _array(row, dtypes: dict) -> dict:
    need(isinstance(row, dict) and isinstance(row.get("dtype"), str), "arrays of a dtype")
    need(row["dtype"] in dtypes, "arrays of known dtypes")
    shape = row.get("shape")
    need(isinstance(shape, list) and len(shape) <= 8, "arrays of a shape")
    return {"shape": [whole_number(n, 1, 1 << 30) for n in shape], "dtype": row["dtype"]}


def prepared(header: dict, arrays: dict, plans: list[Plan], dtypes: dict) -> list[Made]:
    """The reply to a PackRequest for these plans."""
    rows = header.get("cases")
    need(isinstance(rows, list) and len(rows) == len(plans), "a row for each case")
    found = []
    for number, (row, plan) in enumerate(zip(rows, plans, strict=True)):
        need(isinstance(row, dict), "a row for each case")
        printed = str(row.get("printed") or "")[:20_000]
        if "error" in row:
            from grader.box.warm import clean_error

            found.append(Made(error=clean_error(row["error"]), printed=printed))
            continue
        made = {key: arrays.get(f"{number}:{key}") for key in plan.packed}
        for key, array in made.items():
            wanted = plan.packed[key]
            of_shape = array is not None and list(array.shape) == wanted["shape"]
            need(of_shape and array.dtype == dtypes[wanted["dtype"]], "arrays as the plan names them")
        found.append(Made(made, None, printed, *_changed(row)))
    return found


def _changed(row: dict) -> tuple[tuple[int, ...], int | None]:
    changed, line = row.get("changed", []), row.get("line")
    need(isinstance(changed, list) and len(changed) <= MOST_ARGUMENTS, "a list of changed arguments")
    numbers = tuple(whole_number(one, 0, MOST_ARGUMENTS) for one in changed)
    return numbers, None if line is None else whole_number(line, 1, 1_000_000)


def planned(header: dict, cases: list[ToldCase]) -> list[Planned]:
    """Read the reply to a PlanRequest: cases that there was no time for have no facts."""
    rows = header.get("cases")
    need(isinstance(rows, list) and len(rows) <= len(cases), "a row for a case")
    found = []
    for row in rows:
        need(isinstance(row, dict), "a row for a case")
        facts, grids = row.get("facts"), row.get("grids")
        need(isinstance(facts, dict) and len(facts) <= MOST_FACTS, "few facts of a plan")
        short = (isinstance(one, str) and len(one) <= LONGEST_FACT for pair in facts.items() for one in pair)
        need(all(short), "facts that are short texts")
        need(isinstance(grids, list) and len(grids) <= MOST_STEPS, "a grid for each step")
        found.append(Planned(facts, tuple(math.prod(_grid(grid)) for grid in grids)))
    return found + [Planned()] * (len(cases) - len(rows))


def _scratch(rows, dtypes: dict, most: int) -> dict:
    need(isinstance(rows, dict) and len(rows) <= MOST_SCRATCH, "at most 16 scratch buffers")
    found, total = {}, 0
    for key, row in rows.items():
        array = _array(row, dtypes)
        need(isinstance(row.get("fill"), str) and FILL.fullmatch(row["fill"]), "scratch with a fill")
        total += math.prod(array["shape"]) * dtypes[array["dtype"]].itemsize
        found[name(key)] = {**array, "fill": row["fill"]}
    need(total <= most, "scratch within its bytes")
    return found


def launch_facts(*, sizes: dict, scalars: dict, sm_count: int, tensors: Iterable[dict], **_) -> dict:
    """Return what launch(p) may ask of a case: sizes, scalars, strides, dtypes, and how many SMs there are."""
    found = {**sizes, "sm_count": sm_count, **{name: value for name, (_, value) in scalars.items()}}
    for t in tensors:
        for name in names_of(t):
            found |= {f"stride_{name}{axis}": s for axis, s in zip(t["axes"], t["strides"], strict=True)}
    return found | {"dtypes": {name: t["dtype"] for t in tensors for name in names_of(t)}}


def names_of(tensor: dict) -> list[str]:
    """Return a tensor's name, then the one that it had in an earlier edition."""
    return [tensor[key] for key in ("name", "formerly") if tensor.get(key)]


def renamed(tensors: Iterable[dict]) -> dict[str, str]:
    """Return today's names of arguments by the names that they had in an earlier edition."""
    found = {}
    for t in tensors:
        for old in names_of(t)[1:]:
            found[f"{old}_ptr"] = f"{t['name']}_ptr"
            found |= {f"stride_{old}{axis}": f"stride_{t['name']}{axis}" for axis in t["axes"]}
    return found


def known_names(case: ToldCase, scratch: dict) -> set[str]:
    """Return the arguments that a kernel of this case may take: pointers, sizes, scalars and strides."""
    axes = {t["name"]: t["axes"] for t in case.tensors}
    axes |= {key: "0123456789"[: len(row["shape"])] for key, row in scratch.items()}
    found = {f"{key}_ptr" for key in axes} | {f"stride_{key}{axis}" for key in axes for axis in axes[key]}
    return found | set(case.sizes) | set(case.scalars)


def _grid(grid) -> tuple[int, ...]:
    need(isinstance(grid, list) and len(grid) == 3, "a grid of three sizes")
    grid = tuple(whole_number(n, 1, most) for n, most in zip(grid, MOST_ALONG, strict=True))
    need(math.prod(grid) <= MOST_PROGRAMS, "a grid of at most 2**24 programs")
    return grid


def _step(step, kernel, texts: int, known: set[str]) -> Kernel:
    need(isinstance(step, dict) and isinstance(kernel, dict), "a kernel for each step")
    grid, arguments = _grid(step.get("grid")), kernel.get("arguments")
    need(isinstance(arguments, list) and len(arguments) <= 200, "arguments")
    need(all(isinstance(one, str) and one in known for one in arguments), "arguments of known names")
    need(step.get("num_warps") in WARPS, "a number of warps")
    constexprs = step.get("constexprs")
    need(isinstance(constexprs, dict) and len(constexprs) <= 200, "constexprs")
    return Kernel(
        name=name(step.get("kernel")),
        text=whole_number(kernel.get("text"), 0, texts - 1),
        arguments=tuple(arguments),
        grid=grid,
        num_warps=step["num_warps"],
        num_stages=whole_number(step.get("num_stages"), 1, MOST_STAGES),
        constexprs=tuple((name(k), str(v)[:200]) for k, v in constexprs.items()),
    )
