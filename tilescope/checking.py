"""Check one launch. Run it, and run it again if the first run left a question open."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from .births import births
from .call import Call, Tensors
from .findings import Finding, of_atomics, of_error, of_mask, of_race
from .hinted import of_arguments, written_at
from .lines import Lines
from .machine.order import FLOAT_ADDS
from .machine.poisoned import reaching
from .machine.report import Report
from .machine.storage import Kept
from .machine.turns import element_of
from .overflow import overflows

MOST_OTHERS = 64  # programs noted at one element


@dataclass
class Checked:
    """The result of checking a launch."""

    report: Report
    tensors: Tensors
    lines: Lines
    findings: list[Finding] = field(default_factory=list)


class Witness:
    """Notes which programs reach some elements, and at which lines.
    Also finds the first program that loads at `line` with masked-off lanes."""

    def __init__(self, places: set[tuple[str, int]], line: int | None = None):
        self.places, self.line, self.first = places, line, None
        self.seen = defaultdict(dict)  # (tensor, element, kind) -> {(program, line): None}, ordered

    def __call__(self, frame, lanes, kind: str, line: int) -> None:
        if line == self.line and kind == "load" and self.first is None and lanes.active is not None:
            row = int(np.argmin(lanes.counts)) if lanes.rows == frame.size else 0
            self.first = int(frame.programs[row])
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
        kind = {"read": "load", "write": "store"}.get(race["how"].split()[2], "atomic")
        seen = [
            (ids_of(program, grid), line)
            for program, line in self.seen[race["tensor"], race["element"], kind]
        ]
        found = [pair for pair in seen if pair[0] != race["program"]]
        return next((pair for pair in found if pair[0] == race["other"]), found[0] if found else None)

    def masked(self, grid: tuple) -> list[list[int]]:
        return [] if self.first is None else [ids_of(self.first, grid)]

    def writers(self, tensor: str, element: int, grid: tuple) -> list[list[int]]:
        """The programs that change an element."""
        found = {**self.seen[tensor, element, "store"], **self.seen[tensor, element, "atomic"]}
        return [ids_of(program, grid) for program in dict.fromkeys(program for program, _ in found)]


def ids_of(program: int, grid: tuple) -> list[int]:
    return [program % grid[0], program // grid[0] % grid[1], program // (grid[0] * grid[1])]


def check(
    call: Call,
    remembers: bool = False,
    overflow: bool = False,
    atomics: bool = False,
    nan: bool = False,
    looks: Sequence = (),
) -> Checked:
    """Run a launch to its end and report its findings. If it leaves a view, run it again with the whole
    memory in reach, so that an access within that memory becomes a warning. `looks` may run it again once
    everything else is known."""
    lines, tensors = Lines(call.kernel, call.file), call.tensors(False, remembers)
    kept, near = Kept(tensors.stored), []
    how = {"goes_on": True, "repeatable": atomics}
    report = call.run(tensors, counting="full", watcher=lines, launch=lines.launch, **how)
    if strays_of(report) and call.has_views():
        near = strays_of(report)
        kept.back()
        lines, tensors = Lines(call.kernel, call.file), call.tensors(True, remembers)
        kept = Kept(tensors.stored)
        report = call.run(tensors, counting="full", watcher=lines, launch=lines.launch, **how)
    again = Again(call, tensors, kept, how)
    findings = [
        *neighbours(call, near, report),
        *of_report(call, report),
        *of_races(again, report),
        *of_masks(again, report, lines),
        *of_arguments(call),
    ]
    told = [f for f in findings if f.kind in ("bounds", "neighbour", "overflow")]
    if (overflow or told) and again.possible(report):
        rows = overflows(call.module, lambda probe: again(probe=probe))
        if overflow:
            findings += [of_error(call.kernel, call.file, row) for row in rows]
        else:
            explained(told, rows)
    if nan:
        findings += births(again)
    for finding in findings:
        if call.config:
            finding.message += f", with {call.config}"
    checked = Checked(report, tensors, lines, findings)
    for look in looks:
        look.look(checked, again)
    again.leave()
    return checked


class Again:
    """Runs a launch again, from where it began, and in the end leaves memory as the first run did."""

    def __init__(self, call: Call, tensors: Tensors, kept: Kept, how: dict):
        self.call, self.tensors, self.kept, self.how, self.after = call, tensors, kept, how, None

    def __call__(self, **more) -> tuple[Report, dict[str, np.ndarray]]:
        """The report, and what is then in the tensors that the first run wrote."""
        if self.after is None:
            self.after = self.kept.now()
        self.kept.back()
        report = self.call.run(self.tensors, counting="values", **self.how, **more)
        return report, {tensor.name: tensor.elements.copy() for tensor in self.kept.kept}

    def possible(self, report: Report) -> bool:
        """Return whether the launch ran to its end, so that another run can add something."""
        return report.error is None and bool(report.launches)

    def leave(self) -> None:
        if self.after is not None:
            for tensor in self.kept.kept.keys() - self.after.keys():  # another run alone wrote it
                self.after[tensor] = self.kept.kept[tensor]
            self.kept.back(self.after)
        self.kept.end()


def explained(findings: list[Finding], rows: list[dict]) -> None:
    """Name the overflow that caused an access outside a tensor, or that failed one of Triton's own assertions."""
    for finding in findings:
        for row in rows:
            if (finding.line, finding.access) in row["reaches"]:
                finding.message += f", because int32 overflows at line {row['line']}, where {row['what']}"
                break
            if finding.kind == "overflow" and finding.line == row["line"]:
                finding.message += f", where {row['what']}"


def strays_of(report: Report) -> list[dict]:
    return [mistake for mistake in report.mistakes if mistake["kind"] == "OutOfBounds"]


def neighbours(call: Call, near: list[dict], report: Report) -> list[Finding]:
    """Return the accesses that leave a view but stay in its memory.
    An access that leaves both needs only one finding."""
    outside = {(stray["line"], stray["access"]) for stray in strays_of(report)}
    near = [stray for stray in near if (stray["line"], stray["access"]) not in outside]
    found = [of_error(call.kernel, call.file, stray) for stray in near]
    for finding in found:
        finding.kind = "neighbour"
    return found


def of_report(call: Call, report: Report) -> list[Finding]:
    """The mistakes that a launch went on after, the error that ended it, or why the machine can't say what it does."""
    errors = [*report.mistakes, *([report.error] if report.error is not None else [])]
    errors = [{**error, "line": written_at(call.file, error)} for error in errors]
    found = [of_error(call.kernel, call.file, error) for error in errors]
    if report.undecided and report.error is None:
        kind = "undecided" if report.launches else "not run"
        found.append(Finding(kind, report.undecided, call.kernel, call.file))
    return found


def of_races(again: Again, report: Report) -> list[Finding]:
    """The races, and the additions of floats in no order, each with both of its programs."""
    if not report.races:
        return []
    call, stored = again.call, {tensor.name: tensor for tensor in again.tensors.stored}
    witness = Witness({(race["tensor"], race["element"]) for race in report.races})
    if again.possible(report):
        again(watcher=witness)
    found = []
    for race in report.races:
        make = of_atomics if race["how"] == FLOAT_ADDS else of_race
        element = element_of(stored[race["tensor"]], race["element"])
        found.append(make(call, race, witness.other(race, call.grid), element))
    return found


def of_masks(again: Again, report: Report, lines: Lines) -> list[Finding]:
    """The masked loads without `other` whose undefined lanes reach an output."""
    if not report.masked_lines or not again.possible(report):
        return []
    first = report, {tensor.name: tensor.elements.copy() for tensor in again.kept.kept}
    rows = reaching(lambda marked: again(poisoned_lines=marked) if marked else first, report.masked_lines)
    found, call = [], again.call
    for row in rows:
        tensor = "/".join(sorted(lines.rows[row["line"], "load"].tensors))
        places = set()
        for marked in (row["line"],), tuple(report.masked_lines):
            _, other = again(poisoned_lines=marked)
            places |= {
                (name, at) for name in row["outputs"] for at in first_apart(first[1][name], other[name])
            }
        witness = Witness(places, row["line"])
        again(watcher=witness)
        programs = [p for place in sorted(places) for p in witness.writers(*place, call.grid)]
        found.append(of_mask(call, row, tensor, programs or witness.masked(call.grid)))
    return found


def first_apart(one: np.ndarray, other: np.ndarray) -> list[int]:
    """Return the first element whose bits differ between two arrays, or None."""
    apart = one.view(np.uint8) != other.view(np.uint8)
    return [int(apart.argmax()) // one.itemsize] if apart.any() else []
