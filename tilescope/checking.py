"""Check one launch: run it, and run it again where a first run left a question open."""

import copy
from collections import defaultdict
from dataclasses import dataclass, field, replace

import numpy as np

from .call import Call, Tensors
from .findings import Finding, of_error, of_mask, of_race
from .lines import Lines
from .machine.hints import WORDS
from .machine.poisoned import reaching
from .machine.report import Report
from .machine.tree import Module
from .machine.turns import element_of

PROMISES = ("FalseHint", "FalseAssume")
MOST_OTHERS = 64  # programs noted at one element


@dataclass
class Checked:
    """What came of a launch."""

    report: Report
    tensors: Tensors
    lines: Lines
    findings: list[Finding] = field(default_factory=list)


class Memories:
    """The whole memory of a launch's tensors, kept so that the launch can run again from where it began."""

    def __init__(self, call: Call):
        self.arrays = [storage.elements for storage in call.tensors(whole=True).stored]
        self.kept = self.now()

    def now(self) -> list[np.ndarray]:
        return [array.copy() for array in self.arrays]

    def back(self, kept: list[np.ndarray] | None = None) -> None:
        for array, content in zip(self.arrays, kept or self.kept, strict=True):
            array[...] = content


class Witness:
    """Notes which programs reach the elements of some races, at which lines."""

    def __init__(self, races: list[dict]):
        self.places = {(race["tensor"], race["element"]) for race in races}
        self.seen = defaultdict(dict)  # (tensor, element, kind) -> {(program, line): None}, in order

    def __call__(self, frame, lanes, kind: str, line: int) -> None:
        for tensor, element in self.places:
            if tensor != lanes.tensor.name or not (hit := lanes.element == element).any():
                continue
            programs = frame.programs if lanes.rows == 1 else lanes.per_element(frame.programs)[hit]
            seen = self.seen[tensor, element, kind]
            for program in np.unique(programs)[:MOST_OTHERS]:
                if len(seen) < MOST_OTHERS:
                    seen[int(program), line] = None

    def other(self, race: dict, grid: tuple) -> tuple[list[int], int] | None:
        """Ids and line of the program that a race's own program meets."""
        kind = {"read": "load", "write": "store", "atomic": "atomic"}[race["how"].split()[2]]
        seen = [
            (ids_of(program, grid), line)
            for program, line in self.seen[race["tensor"], race["element"], kind]
        ]
        found = [pair for pair in seen if pair[0] != race["program"]]
        return next((pair for pair in found if pair[0] == race["other"]), found[0] if found else None)


def ids_of(program: int, grid: tuple) -> list[int]:
    return [program % grid[0], program // grid[0] % grid[1], program // (grid[0] * grid[1])]


def check(call: Call) -> Checked:
    """Runs a launch, and reports its findings. A broken promise, or an access to a view's neighbours, is a warning:
    the launch runs again without the promise, or with the whole memory in reach."""
    memories, module, whole, warnings = Memories(call), call.module, False, []
    while True:
        lines, tensors = Lines(call.kernel, call.file), call.tensors(whole)
        report = call.run(tensors, module, counting="full", watcher=lines)
        error = report.error
        if error is None:
            break
        found = of_error(call.kernel, call.file, error)
        if error["kind"] in PROMISES and found.line not in {w.line for w in warnings if w.kind == "hint"}:
            module = without_promises(module, found.line)
        elif error["kind"] == "OutOfBounds" and not whole and call.has_views():
            whole, found.kind = True, "neighbour"
        else:
            break
        warnings.append(found)
        memories.back()
    findings = [*warnings, *of_report(call, report)]
    if any(f.kind == "bounds" for f in findings):  # it left the memory too: one finding says it
        findings = [f for f in findings if f.kind != "neighbour" or f.line != report.error["line"]]

    after, outputs = memories.now(), contents(tensors)

    def once_more(**how) -> tuple[Report, dict]:
        memories.back()
        again = call.tensors(whole)
        return call.run(again, module, counting="values", **how), contents(again)

    if report.races:
        witness = Witness(report.races)
        once_more(watcher=witness)
        places = {t.name: t for t in tensors.stored}
        for race in report.races:
            element = element_of(places[race["tensor"]], race["element"])
            other = witness.other(race, call.grid)
            findings.append(of_race(call.kernel, call.file, race, other, element))
    if report.masked_lines and report.error is None and report.launches:
        rows = reaching(
            lambda marked: once_more(poisoned_lines=marked) if marked else (report, outputs),
            report.masked_lines,
        )
        for row in rows:
            tensor = "/".join(sorted(lines.rows[row["line"], "load"].tensors))
            findings.append(of_mask(call.kernel, call.file, row, tensor))
    memories.back(after)
    return Checked(report, tensors, lines, findings)


def contents(tensors: Tensors) -> dict[str, np.ndarray]:
    return {storage.name: storage.elements.copy() for storage in tensors.stored}


def of_report(call: Call, report: Report) -> list[Finding]:
    """The error that ended a launch, or the reason why the machine can't say what it does."""
    if report.error is not None:
        return [of_error(call.kernel, call.file, report.error)]
    if report.undecided:
        kind = "undecided" if report.launches else "not run"
        return [Finding(kind, report.undecided, call.kernel, call.file)]
    return []


def without_promises(module: Module, line: int | None) -> Module:
    """A copy of a kernel's module in which nothing is promised to the compiler on one line."""
    module = copy.deepcopy(replace(module, prepared=None))
    for function in module.functions.values():
        if function.line == (line or 0):
            function.argument_attributes = [{} for _ in function.argument_attributes]
        for block in function.blocks:
            forget(block, line or 0)
    return module


def forget(block, line: int) -> None:
    block.ops = [op for op in block.ops if op.line != line or op.name != "llvm.intr.assume"]
    for op in block.ops:
        if op.line == line:
            op.attributes = {name: value for name, value in op.attributes.items() if name not in WORDS}
        for region in op.regions:
            for inner in region:
                forget(inner, line)
