"""Work for the machine: named operations on plain data. It reads hostile text and runs it, but never anyone's Python,
so its reports are its own."""

from dataclasses import asdict
from functools import partial
from math import prod

import numpy as np
import numpy.ma  # noqa: F401  np.isin imports it when it first runs, which would be in every child

from tilescope.machine.contiguity import accesses
from tilescope.machine.dtypes import DTYPES
from tilescope.machine.influence import steers
from tilescope.machine.limits import Limits
from tilescope.machine.narrow import converted
from tilescope.machine.poisoned import reaching
from tilescope.machine.read import read
from tilescope.machine.report import Report
from tilescope.machine.run import Launching
from tilescope.machine.run import run as run_steps
from tilescope.machine.storage import ROOM_OF_OUTPUTS, Paged, Storage, contiguous
from tilescope.machine.stores_alone import stores_alone
from tilescope.machine.tree import BadIR, Block, Module
from tilescope.machine.verify import verify
from tilescope.machine.write import write
from tilescope.machine.written_by_waves import indices_by_wave

from .by_line import ByLine
from .writers import Writers

SHORT_PAGE = (
    16  # elements of an output of which only the places are noted, since programs may touch them one by one
)
LEAST_PLACES, MOST_PLACES = 1 << 22, 1 << 27
SPARE_PLACES = 8  # times those that programs store to, in whole pages
IN_CACHE = 1 << 16  # elements that are counted at a time: a core's cache holds them, and a tab has the memory


def prepare() -> None:
    """Imports are all that a child must find warm."""


def run(task: dict, arrays: dict[str, np.ndarray]) -> tuple[dict, dict[str, np.ndarray]]:
    operations = {
        "run": run_plan,
        "stores": find_stores,
        "poison": find_poison,
        "writers": find_writers,
        "lines": find_lines,
        "print": print_texts,
    }
    if task.get("operation") not in operations:
        raise ValueError(f"operation must be one of {', '.join(operations)}, got {task.get('operation')!r}")
    return operations[task["operation"]](task, arrays)


def parsed(text: str) -> Module:
    module = read(text)
    verify(module)
    for function in module.functions.values():
        refuse_addresses(function.blocks)
    return module


def refuse_addresses(blocks: list[Block]) -> None:
    """Refuse a pointer that becomes a number: it would tell this machine from a GPU, whose addresses are others."""
    for block in blocks:
        for op in block.ops:
            if op.name == "tt.ptr_to_int":
                raise BadIR(
                    "a pointer turned into a number: its address is another one in every run, so nothing may depend on it; "
                    "add offsets to the pointer itself",
                    op.line,
                )
            for region in op.regions:
                refuse_addresses(region)


def bad_text(error: BadIR) -> dict:
    return {"stage": "text", "kind": "BadIR", "message": str(error), "line": error.line or None}


def run_plan(task: dict, arrays: dict) -> tuple[dict, dict]:
    try:
        modules = [parsed(text) for text in task["texts"]]
    except BadIR as error:
        return asdict(Report(error=bad_text(error))), {}
    tensors = tensors_of(task, arrays)
    report = run_task(task, modules, tensors)
    if task.get("programs"):
        return asdict(report), written(tensors)
    outputs = {t.name: t.elements for t in tensors if t.role in ("out", "inout")}
    if task.get("counting", "full") == "full":
        for tensor in (one for one in tensors if one.role != "scratch"):  # of scratch the report tells enough
            outputs[f"loads:{tensor.name}"], outputs[f"stores:{tensor.name}"] = tensor.loads, tensor.stores
    return asdict(report), outputs


def find_stores(task: dict, arrays: dict) -> tuple[dict, dict]:
    """Return what no program of the plan writes, without computing any written value."""
    try:
        modules = [stores_alone(parsed(text)) for text in task["texts"]]
    except BadIR as error:
        return asdict(Report(error=bad_text(error))), {}
    tensors = tensors_of(task, arrays)
    report = run_task({**task, "counting": "places"}, modules, tensors)
    outputs = [tensor for tensor in tensors if tensor.role in ("out", "inout")]
    if task.get("programs"):
        return asdict(report), {f"by:{t.name}": by_program(t, task["programs"][0]) for t in outputs}
    report.shares = {t.name: share(t) for t in outputs}
    return asdict(report), {}


def by_program(tensor: Storage, programs: list[int]) -> np.ndarray:
    """Return how many elements of an output each of these programs wrote."""
    who = tensor.writer[tensor.writer >= 0]
    return np.bincount(who, minlength=max(programs) + 1)[programs].astype(np.int64)


def share(tensor: Storage) -> list[int]:
    """Of an output, how many elements were written, and how many by the program that wrote most."""
    each = np.zeros(int(tensor.writer.max(initial=-1)) + 1, np.int64)
    part = max(IN_CACHE, each.size)
    for first in range(0, tensor.extent, part):
        who = tensor.writer[first : first + part]
        each += np.bincount(who + 1, minlength=each.size + 1)[1:]  # -1 is nobody
    return [int(each.sum()), int(each.max(initial=0))]


def written(tensors: list[Storage]) -> dict:
    """Return the values that programs drawn from a large grid wrote, with indices and programs. The rest of an output would
    say nothing."""
    found = {}
    for tensor in tensors:
        if tensor.role in ("out", "inout"):
            where = np.flatnonzero(tensor.writer >= 0)
            at = tensor.numbered(where) if isinstance(tensor, Paged) else where
            found[f"at:{tensor.name}"] = at.astype(np.int64)  # a tab's indices have 32 bits
            found[tensor.name] = tensor.elements[where]
            found[f"by:{tensor.name}"] = tensor.writer[where].astype(np.int64)
    return found


def find_poison(task: dict, arrays: dict) -> tuple[dict, dict]:
    """The lines of masked loads without `other` that reach an output, and which outputs."""
    modules = [parsed(text) for text in task["texts"]]

    def again(lines):
        tensors = tensors_of(task, arrays)
        report = run_task({**task, "counting": "values", "poisoned_lines": lines}, modules, tensors)
        return report, {t.name: t.elements for t in tensors if t.role in ("out", "inout")}

    first, _ = again(())
    return {"poison": reaching(again, first.masked_lines)}, {}


def find_writers(task: dict, arrays: dict) -> tuple[dict, dict]:
    """Find the line, the program and the launch that store each element of the outputs."""
    modules, tensors = [parsed(text) for text in task["texts"]], tensors_of(task, arrays)
    writers = Writers(tensors)
    run_task({**task, "counting": "values"}, modules, tensors, watcher=writers, launch=writers.begin)
    return {}, writers.arrays()


def find_lines(task: dict, arrays: dict) -> tuple[dict, dict]:
    """Find how many bytes each line asks for, by tensor and kind of access."""
    modules, tensors = [parsed(text) for text in task["texts"]], tensors_of(task, arrays)
    by_line = ByLine()
    run_task({**task, "counting": "values"}, modules, tensors, watcher=by_line)
    return {"lines": by_line.rows()}, {}


def print_texts(task: dict, arrays: dict) -> tuple[dict, dict]:
    """Return the input of compiler and bench, which is the print of the text's tree, never the text itself. Also return the
    loads and stores of blocks in each text, as a compiler sees their addresses, and what steers them."""
    texts, seen, steered = [], [], []
    for text in task["texts"]:
        try:
            module = parsed(text)
            texts.append(write(module))
            seen.append([list(vars(one).values()) for one in accesses(module)])
            steered.append([[list(vars(one).values()) for one in rows] for rows in steers(module)])
        except BadIR as error:
            texts.append({"error": bad_text(error)})
            seen.append([])
            steered.append([[], [], []])
    return {"texts": texts, "accesses": seen, "steers": steered}, {}


def run_task(task: dict, modules: list[Module], tensors: list[Storage], **more) -> Report:
    steps = [
        Launching(modules[s["text"]], tuple(s["grid"]), [tuple(pair) for pair in s["arguments"]])
        for s in task["steps"]
    ]
    report = run_steps(
        steps,
        tensors,
        wave=task["sm_count"],
        programs=task.get("programs"),
        counting=task.get("counting", "full"),
        repeatable=task.get("repeatable", True),
        seed=task.get("seed", 0),
        limits=Limits(seconds=task.get("seconds", Limits.seconds)),
        poison=task.get("poison", 0),
        shuffled=task.get("shuffled", 0),
        poisoned_lines=tuple(task.get("poisoned_lines", ())),
        **more,
    )
    if task.get("waves_of") and not report.error:
        outputs = [tensor for tensor in tensors if tensor.role in ("out", "inout")]
        report.written_by_waves = {t.name: indices_by_wave(t, task["waves_of"]) for t in outputs}
    return report


def tensors_of(task: dict, arrays: dict) -> list[Storage]:
    """Return the question's tensors, then the plan's scratch. Nothing here is shared with the request."""
    tensors, drawn = [], np.random.default_rng(task.get("fill", 0))
    for t in task["tensors"]:
        given = arrays.get(t["name"])
        if t.get("paged") and t["role"] == "out" and task.get("operation") == "stores":
            room = room_of_places(task, prod(t["shape"]))
            kind = partial(Paged, page=SHORT_PAGE, room=room) if room else Storage
            content = np.zeros(0 if room else prod(t["shape"]), DTYPES[t["dtype"]])
        elif t.get("paged"):
            given = np.empty(0, DTYPES[t["dtype"]]) if given is None else given
            kind, content = Paged, require(t, given, given.size).reshape(-1)
        else:
            kind, content = Storage, stored(t, given, drawn)
        tensors.append(kind(t["name"], len(tensors), content, t["role"], t["shape"], t["strides"], t["axes"]))
    for name, s in task.get("scratch", {}).items():
        large = prod(s["shape"]) > ROOM_OF_OUTPUTS and task.get("programs")
        content = converted(np.full(1 if large else prod(s["shape"]), float(s["fill"])), DTYPES[s["dtype"]])
        shape = s["shape"], contiguous(s["shape"])
        tensors.append((Paged if large else Storage)(name, len(tensors), content, "scratch", *shape))
    return tensors


def room_of_places(task: dict, elements: int) -> int:
    """Return how many elements of an output drawn programs may reach where only places are noted, or 0 if all run."""
    if not task.get("programs"):
        return 0
    programs, grid = len(task["programs"][0]), prod(task["steps"][0]["grid"])
    return (
        min(MOST_PLACES, max(LEAST_PLACES, SPARE_PLACES * programs * elements // grid))
        // SHORT_PAGE
        * SHORT_PAGE
    )


def require(t: dict, given: np.ndarray, extent: int) -> np.ndarray:
    if given.dtype != DTYPES[t["dtype"]] or given.size != extent:
        raise ValueError(
            f"{t['name']} must be {extent} elements of {t['dtype']}, got {given.size} of {given.dtype}"
        )
    return given


def stored(t: dict, given: np.ndarray | None, drawn: np.random.Generator) -> np.ndarray:
    """Return a tensor's content. A missing one holds anything, as unwritten memory does."""
    dtype, shape = DTYPES[t["dtype"]], t["shape"]
    extent = 0 if 0 in shape else 1 + sum((n - 1) * s for n, s in zip(shape, t["strides"], strict=True))
    if given is None:
        anything = np.frombuffer(drawn.bytes(extent * dtype.itemsize), np.uint8)
        return (anything & 1 if dtype.kind == "b" else anything.copy()).view(dtype)
    given = require(t, given, extent)
    return given.reshape(-1) if t["role"] == "in" else given.reshape(-1).copy()
