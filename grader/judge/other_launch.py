"""Find mistakes in launch(p): run the same kernels on another grid, or with another constant, on the same case. Find
mistaken strides the same way, with the case's tensors laid out row by row.

Nothing is guessed. The other launch runs, and is named only if it makes the failed case right.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import combinations, product
from math import prod

import numpy as np

from grader.box.warm import JailTrouble, Limits
from grader.jail import host as jail
from grader.jail.protocol import Kernel, LowerRequest, Plan, TextsRequest
from grader.judge import hidden_failure
from grader.judge.diagnose import OUTSIDE, RACE, UNTOLD, UNWRITTEN, differs, judge_effects
from grader.judge.failed import Failed, Refusal, Unclear
from grader.judge.kernel_evidence import KernelEvidence, Run
from grader.judge.source import ids_asked
from grader.questions import Case, memory

MOST_S = 8.0  # of processor time for all that is tried
CASE_S = 4.0  # and for one case on the machine
LOWERING = Limits(wall_s=20.0, cpu_s=15, answer_bytes=16 << 20)
MOST_GRIDS = 24  # of one step
MOST_STEPS = 4
MOST_RELAID = 3  # tensors at once that the case is tried without the layout of
FACTORS = (2.0, 0.5, 4.0, 0.25)
SMALLEST_BLOCK = 8  # a smaller constant is a switch or a count, and no side of a block
MORE = 4  # cases like hidden ones, because a chance change may make the public ones right
WIDER = (2, 3, 4, 8, 16)  # factors of programs along an axis


def launch_to_blame(evidence: KernelEvidence, purpose: int, failed: Failed) -> str:
    """Return a sentence if another launch makes this case right, else name the grid axis that a kernel never reads."""
    run = evidence.runs[purpose]
    read = run.outcome.header.get("ids_read") or []
    if failed.facts.get("known") or run.plan is None or below(run):
        return ""
    trial = Trial(evidence, purpose)
    if failed.told in (UNTOLD, RACE, UNWRITTEN):
        if said := trial.of_layouts():
            return said
        failed.came += "; with all tensors laid out row by row it is wrong, too" * trial.strides_are_right
    if failed.told == UNTOLD and (said := trial.of_exchanged()):
        return said
    reaches = failed.told in (OUTSIDE, UNWRITTEN) or failed.facts.get("unstored", False)
    steps = list(zip(run.plan.steps, read, strict=False))
    if reaches and (said := next(filter(None, (unused(evidence.source, *one) for one in steps)), "")):
        return said
    idle = [unread(*one) for one in steps]
    try:
        found = trial.of_grids(read) if reaches or any(idle) else ""
        found = found or (trial.of_constants() if reaches and purpose in evidence.public else "")
    except (JailTrouble, OutOfTime):
        found = ""
    return found or (next(filter(None, idle), "") if reaches else "")


def enough(run: Run) -> bool:
    """Return whether each output would be filled if every program stored as many elements as the busiest, and some meet or
    store none. Then the indices that programs make of their numbers are wrong."""
    for placed in run.placed:
        if placed.spec.role == "in":
            continue
        stores = [launch["tensors"].get(placed.spec.name, {}).get("store") for launch in run.launches]
        most = sum(
            launch["programs"] * row["busiest"]
            for launch, row in zip(run.launches, stores, strict=True)
            if row
        )
        if most < prod(placed.shape) * placed.storage.itemsize:
            return False
        if len(stores) == 1 and stores[0] and apart(run.launches[0], stores[0]):
            return False
    return True


def apart(launch: dict, row: dict) -> bool:
    """Return whether every program stores, and no two the same element."""
    return row["programs"] == launch["programs"] and row["requested"] == row["unique"]


def below(run: Run) -> bool:
    """Return whether a kernel reached an index below 0. A program's number is never negative, so another grid can't
    cure this."""
    error = run.outcome.header.get("error")
    index = error.get("index") if isinstance(error, dict) else None
    return isinstance(index, int) and index < 0


Given = tuple[Case, dict, list[memory.Placed]]  # a case with its inputs, and where they lie


class OutOfTime(Exception):
    """Say that enough was tried."""


@dataclass
class Trial:
    evidence: KernelEvidence
    purpose: int
    spent_s: float = 0.0
    most_s: float = MOST_S
    strides_are_right: bool = False  # whether the case is wrong without any layout of its own, too

    @property
    def run(self) -> Run:
        return self.evidence.runs[self.purpose]

    @property
    def entry(self) -> str:
        return self.evidence.question.entry

    def of_layouts(self) -> str:
        """Return the fewest tensors that have to be laid out row by row for this case to be right."""
        case, evidence = self.evidence.case(self.purpose), self.evidence
        if not case.layout or evidence.question.prepare:
            return ""
        names = [some for n in range(1, MOST_RELAID + 1) for some in combinations(case.layout, n)]
        names = list(dict.fromkeys([*names, tuple(case.layout)]))
        cases = [
            replace(case, layout={n: how for n, how in case.layout.items() if n not in some})
            for some in names
        ]
        try:
            for some, one, (texts, plan) in zip(
                names, cases, self.lowered_cases([(c, {}) for c in cases]), strict=True
            ):
                placed = memory.place(evidence.question, one, self.run.inputs)
                if plan is not None and self.right_on(one, plan, texts, self.run.inputs, placed):
                    return relaid(some)
                self.strides_are_right = plan is not None and set(some) == set(case.layout)
        except (JailTrouble, OutOfTime):
            pass
        return ""

    def of_exchanged(self) -> str:
        """Return two inputs of the same shape and dtype with which, once they are exchanged, the case is right."""
        run, evidence = self.run, self.evidence
        case, own = evidence.case(self.purpose), {one.spec.name for one in run.placed}
        inputs = [one for one in run.placed if one.spec.role == "in" and one.spec.name in run.inputs]
        if evidence.question.prepare or own != {spec.name for spec in evidence.question.tensors}:
            return ""
        for one, other in combinations(inputs, 2):
            if (one.shape, one.dtype) != (other.shape, other.dtype):
                continue
            a, b = one.spec.name, other.spec.name
            placed = memory.place(evidence.question, case, run.inputs | {a: run.inputs[b], b: run.inputs[a]})
            try:
                if self.right_on(case, run.plan, evidence.texts(self.purpose), run.inputs, placed):
                    return f"with {a} and {b} exchanged this case is right: which of the two is used in the other's place?"
            except (JailTrouble, OutOfTime):
                return ""
        return ""

    def of_grids(self, read: list[list[int]]) -> str:
        """Return the first other grid, of one step alone, with which the case is right."""
        steps = self.run.plan.steps
        for place, (step, ids) in enumerate(zip(steps[:MOST_STEPS], read, strict=False)):
            for grid in list(other_grids(step.grid, ids))[:MOST_GRIDS]:
                if prod(grid) > prod(step.grid) and enough(self.run):
                    continue
                plan = replace(self.run.plan, steps=exchanged(steps, place, replace(step, grid=grid)))
                if self.right(self.purpose, plan, self.evidence.texts(self.purpose)):
                    return said_of_grid(self.entry, step, ids, grid)
        return ""

    def of_constants(self) -> str:
        """Return the one other value of a constant that makes this case and every public one right. If several values
        do, none is the cause: a block large enough to end a loop after one iteration hides what is wrong with the
        second."""
        known = dict.fromkeys(pair for step in self.run.plan.steps for pair in step.constexprs)
        changes = [(name, old, new) for name, value in known for old, new in other_sizes(value)]
        right = [
            change
            for change, (texts, plan) in zip(
                changes, self.lowered([(self.purpose, one) for one in changes]), strict=True
            )
            if plan is not None and self.right(self.purpose, plan, texts)
        ]
        for change in right:
            name, old, new = change
            if [one[:2] for one in right].count((name, old)) == 1 and self.elsewhere_too(change):
                return (
                    f"the constants in {self.entry}: with {name} = {new} instead of {old} all public cases and {MORE} more are "
                    "right"
                )
        return ""

    def elsewhere_too(self, change: tuple[str, int, int]) -> bool:
        """Return whether a change makes the other public cases right, and some like hidden ones."""
        name, *pair = change
        rest = list(others(self.evidence, self.purpose))
        lowered = self.lowered_cases([(case, {name: pair}) for case, *_ in rest])
        return self.all_right(rest, lowered)

    def lowered(self, wanted: list[tuple[int, tuple[str, int, int]]]) -> list[tuple[tuple, Plan | None]]:
        """Return (texts, plan) of each case with its change, lowered together. A case that doesn't compile has no
        plan."""
        case = self.evidence.case
        return self.lowered_cases([(case(purpose), {name: pair}) for purpose, (name, *pair) in wanted])

    def of_source(self, source: str, given: list[Given]) -> bool:
        """Return whether another text of the cell makes all these cases right."""
        return self.all_right(given, self.lowered_cases([(case, {}) for case, *_ in given], source))

    def right_texts(self, sources: list[str], given: Given) -> Iterator[int]:
        """Yield which of several texts of the cell make a case right. They are lowered together."""
        case, inputs, placed = given
        request = TextsRequest(sources, self.entry, self.evidence.told(case), self.evidence.target)
        outcome, found = jail.lower_each(request, self.evidence.level)
        self.spend(outcome.cpu_s)
        for number, plan in enumerate(found.plans if found else ()):
            if isinstance(plan, Plan) and self.right_on(case, plan, found.texts, inputs, placed):
                yield number

    def all_right(self, given: list[Given], lowered: list[tuple[tuple, Plan | None]]) -> bool:
        return all(
            plan is not None and self.right_on(case, plan, texts, inputs, placed)
            for (case, inputs, placed), (texts, plan) in zip(given, lowered, strict=True)
        )

    def lowered_cases(
        self, wanted: list[tuple[Case, dict]], source: str = ""
    ) -> list[tuple[tuple, Plan | None]]:
        if not wanted:
            return []
        evidence = self.evidence
        tasks = [
            replace(evidence.told(case), instead={name: tuple(pair) for name, pair in change.items()})
            for case, change in wanted
        ]
        request = LowerRequest(source or evidence.source, self.entry, tasks, evidence.target)
        outcome, found = jail.lower(request, evidence.level, LOWERING)
        self.spend(outcome.cpu_s)
        if found is None:
            return [((), None)] * len(wanted)
        return [(found.texts, plan if isinstance(plan, Plan) else None) for plan in found.plans]

    def right(self, purpose: int, plan: Plan, texts: tuple[str, ...]) -> bool:
        case, inputs, placed = given(self.evidence, purpose)
        return self.right_on(case, plan, texts, inputs, placed)

    def right_on(
        self, case: Case, plan: Plan, texts: tuple[str, ...], inputs: dict, placed: list[memory.Placed]
    ) -> bool:
        evidence = self.evidence
        outcome = evidence.launch(case, plan, texts, placed, seconds=CASE_S)
        self.spend(outcome.cpu_s)
        run = Run(case, False, plan, placed, inputs, {}, outcome)
        try:
            judge_effects(run)
        except (Failed, Refusal, Unclear):
            return False
        run.want = evidence.question.reference(inputs, case)
        return not differs(evidence.question, inputs, case, {n: run.output(n) for n in run.want}, run.want)[0]

    def spend(self, seconds: float) -> None:
        self.spent_s += seconds
        if self.spent_s > self.most_s:
            raise OutOfTime


def relaid(names: tuple[str, ...]) -> str:
    if len(names) == 1:
        return (
            f"with {names[0]} laid out row by row this case is right: does every address of {names[0]} use {names[0]}'s own "
            "strides, each of them, and no other tensor's address one of these?"
        )
    both = f"{', '.join(names[:-1])} and {names[-1]}"
    return (
        f"with {both} laid out row by row this case is right: does every address use the strides of its own tensor, and each of "
        "them?"
    )


def exchanged(steps: tuple[Kernel, ...], place: int, step: Kernel) -> tuple[Kernel, ...]:
    return (*steps[:place], step, *steps[place + 1 :])


def other_sizes(value: str) -> Iterator[tuple[int, int]]:
    """(what it is, what it could be) of a constant that looks like the side of a block."""
    number = int(value) if value.isdecimal() and len(value) < 6 else 0
    if number >= SMALLEST_BLOCK and number & (number - 1) == 0:
        yield from ((number, new) for f in FACTORS if (new := int(number * f)) >= SMALLEST_BLOCK)


def other_grids(grid: tuple[int, int, int], ids: list[int]) -> Iterator[tuple[int, int, int]]:
    """Yield the grids that may have been meant, the likeliest first: the same programs on the axes that the kernel
    reads, then one more or fewer along an axis, then several times the number."""
    sizes = [size for size in grid if size > 1]
    moved = [on_axes(sizes, axes) for axes in product(ids, repeat=len(sizes))]
    split = [
        on_axes((rows, prod(grid) // rows), pair)
        for pair in combinations(ids, 2)
        for rows in range(1, min(prod(grid), MOST_GRIDS) + 1)
        if len(sizes) == 1 and prod(grid) % rows == 0
    ]
    stepped = [along(grid, axis, grid[axis] + by) for axis in ids for by in (-1, 1) if grid[axis] + by > 0]
    wider = [along(grid, axis, grid[axis] * times) for axis in ids for times in WIDER]
    yield from (one for one in dict.fromkeys([*moved, *split, *stepped, *wider]) if one != tuple(grid))


def on_axes(sizes, axes) -> tuple[int, int, int]:
    return tuple(prod(size for size, at in zip(sizes, axes, strict=True) if at == axis) for axis in range(3))


def along(grid: tuple[int, int, int], axis: int, size: int) -> tuple[int, int, int]:
    return tuple(size if place == axis else n for place, n in enumerate(grid))


def unused(source: str, step: Kernel, ids: list[int]) -> str:
    """Return a program id that a kernel's text asks for, although none of its results depends on this id."""
    idle = [axis for axis in ids_asked(source, step.name) if axis not in ids and step.grid[axis] > 1]
    if not idle:
        return ""
    return (
        f"kernel {step.name} asks for tl.program_id({idle[0]}) and never uses it, so that its {step.grid[idle[0]]} programs "
        f"along axis {idle[0]} all do the same: each program's offsets begin at its id times the size of a block"
    )


def unread(step: Kernel, ids: list[int]) -> str:
    """Return a grid axis with several programs that the kernel can't tell apart."""
    axis = next((axis for axis, size in enumerate(step.grid) if size > 1 and axis not in ids), None)
    if axis is None:
        return ""
    return (
        f"the grid of {step.name}, {written(step.grid, ids)}: the kernel asks for {asked(ids)}, so that the {step.grid[axis]} "
        f"programs along axis {axis} all do the same"
    )


def said_of_grid(entry: str, step: Kernel, ids: list[int], grid: tuple[int, int, int]) -> str:
    if lone := [
        axis for axis in ids if step.grid[axis] == 1 and grid[axis] > 1 and prod(grid) > prod(step.grid)
    ]:
        return (
            f"the grid in {entry}: the kernel asks for {asked(ids)}, but with {written(step.grid, ids)} there is one program "
            f"along axis {lone[0]}; with more of them this case is right"
        )
    return (
        f"the grid in {entry}: the kernel asks for {asked(ids)}; with {written(grid, ids)} instead of "
        f"{written(step.grid, ids)} this case is right"
    )


def asked(ids: list[int]) -> str:
    if not ids:
        return "no tl.program_id at all"
    names = " and ".join(f"tl.program_id({axis})" for axis in ids)
    return f"{names} alone" if len(ids) == 1 else names


def written(grid: tuple[int, int, int], ids: list[int]) -> str:
    """Write a grid as launch(p) would, with the axes that have several programs or are read."""
    last = max([*ids, *(axis for axis, size in enumerate(grid) if size > 1), 0])
    sizes = ", ".join(map(str, grid[: last + 1]))
    return f"({sizes},)" if last == 0 else f"({sizes})"


def given(evidence: KernelEvidence, purpose: int) -> Given:
    run = evidence.runs.get(purpose)
    drawn = run is not None and run.plan is not None  # else the launch failed before
    return evidence.case(purpose), *((run.inputs, run.placed) if drawn else evidence.draw(purpose))


def others(evidence: KernelEvidence, purpose: int, most: int | None = MORE) -> Iterator[Given]:
    """Yield the other public cases, and some like hidden ones from a public seed, or all of them."""
    yield from (given(evidence, one) for one in evidence.public if one != purpose)
    question, told = evidence.question, evidence.case(purpose).sm_count
    if question.prepare:  # nothing has packed the weights of other cases
        return
    rng = np.random.default_rng(hidden_failure.SHOWN_SEED)
    for case in list(question.hidden(rng))[:most]:
        inputs = question.drawn_inputs(case, rng)
        yield replace(case, sm_count=told), inputs, memory.place(question, case, inputs)
