"""Find where a kernel goes wrong when no known mistake explains the failure, by the line that stores, the programs, and
the unwritten elements."""

import numpy as np

from grader.box.warm import JailTrouble
from grader.judge.compare import Difference, tell_apart
from grader.judge.failed import Failed
from grader.judge.pattern import Pattern

LISTED = 4  # numbers of programs named one by one


def wrong(evidence, run, pattern: Pattern, worst: Difference | None) -> str:
    """Name the line and the program that store the first wrong element, and which programs store wrong ones."""
    if left := unstored(pattern):
        return left
    stored = writers(evidence, run, pattern.name)
    first = tuple(int(i) for i in np.argwhere(pattern.wrong)[0])
    line = int(stored["line"][first]) if stored else -1
    if line <= 0:
        return worst.first() if worst else ""
    if before := filled_before(stored, pattern, first, line):
        return before
    launch, program = int(stored["launch"][first]), int(stored["program"][first])
    grid = run.plan.steps[launch].grid
    which = shown(pattern, first) if worst is None or first != worst.index else "it"
    said = f"line {line} of the cell stores {which}, in program {ids(program, grid)}"
    asks = evidence.question.prepare
    made = asks and f"either {asks.entry} makes wrong arrays (codes, scales) or the kernel reads them wrongly"
    return "; ".join(filter(None, (made, said, programs(stored, pattern.wrong, launch, grid))))


def filled_before(stored: dict, pattern: Pattern, first: tuple[int, ...], line: int) -> str:
    """Say that the first wrong element still holds what one line fills the output with, because the line that stores the rest
    never comes there."""
    filled = stored["line"] == line
    others = np.unique(stored["line"][~filled & (stored["line"] > 0)])
    if len(others) != 1 or len(np.unique(pattern.came[filled])) > 1:
        return ""
    came, want = tell_apart(float(pattern.came[first]), float(pattern.want[first]))
    place = f"{pattern.name}[{', '.join(map(str, first))}]"
    return (
        f"{place} still holds the {came} of line {line}, where line {others[0]}, which stores the rest, should have put {want}: look at "
        "what its addresses are made of"
    )


def unstored(pattern: Pattern) -> str:
    """Say that no program stores any of the wrong elements, which hold what they held before."""
    if pattern.stored is None or (pattern.wrong & pattern.stored).any():
        return ""
    first = ", ".join(map(str, np.argwhere(pattern.wrong)[0]))
    return f"no program stores any of the wrong ones, from {pattern.name}[{first}] on: they hold what was there before"


def writers(evidence, run, name: str) -> dict[str, np.ndarray]:
    """Return which program stores each element of an output, or {} if that can't be found out."""
    if evidence is None or run.hidden:
        return {}
    try:
        return evidence.writers(run, name)
    except (
        Failed,
        JailTrouble,
        StopIteration,
    ):  # its time is used up, or the run is none of the evidence's own
        return {}


def shown(pattern: Pattern, index: tuple[int, ...]) -> str:
    came, want = tell_apart(float(pattern.came[index]), float(pattern.want[index]))
    place = f"{pattern.name}[{', '.join(map(str, index))}]" if index else pattern.name
    return f"the first wrong one, {place} ({came} instead of {want})"


def ids(program: int, grid: tuple[int, ...]) -> str:
    """Write a program as its kernel knows it, a number, or one number per axis."""
    x, y, _ = grid
    each = (program % x, program // x % y, program // (x * y))
    used = max((axis + 1 for axis, size in enumerate(grid) if size > 1), default=1)
    return str(each[0]) if used == 1 else f"({', '.join(map(str, each[:used]))})"


def programs(stored: dict, bad: np.ndarray, launch: int, grid: tuple[int, ...]) -> str:
    """Say which programs of a launch store wrong elements, where others store none."""
    own = stored["launch"] == launch
    everyone, guilty = np.unique(stored["program"][own]), np.unique(stored["program"][own & bad])
    if len(guilty) == len(everyone) or (bad & ~own).any():
        return ""
    x, y, _ = grid
    places = [(one % x, one // x % y, one // (x * y)) for one in (everyone, guilty)]
    for axis in range(3):
        all_of, bad_of = (np.unique(each[axis]) for each in places)
        whole = np.isin(places[0][axis], bad_of)
        if len(bad_of) == len(all_of) or not np.array_equal(everyone[whole], guilty):
            continue
        if len(bad_of) == 1:
            last = ", the last," if bad_of[0] == all_of[-1] else ""
            return f"only programs with tl.program_id({axis}) = {bad_of[0]}{last} store wrong ones"
        if len(bad_of) == len(all_of) - 1:
            (right,) = set(all_of.tolist()) - set(bad_of.tolist())
            return f"all programs store wrong ones but those with tl.program_id({axis}) = {right}"
        if len(bad_of) <= LISTED:
            return (
                f"only programs with tl.program_id({axis}) = {', '.join(map(str, bad_of))} store wrong ones"
            )
    if len(guilty) == 1:
        return f"only program {ids(int(guilty[0]), grid)} stores wrong ones"
    return f"{len(guilty)} of {len(everyone)} programs store wrong ones"


# ---- elements that were never stored


def unwritten(evidence, run, name: str, missing: np.ndarray) -> str:
    """Say which elements no program stores, which line stores the others, and what in the counts explains the gap."""
    stored = writers(evidence, run, name)
    lines = np.unique(stored["line"][stored["line"] > 0]) if stored else []
    found = Pattern(name, missing.astype(float), np.zeros(missing.shape), missing, axes_of(run, name))
    place = found.place().replace(f"{name} is wrong only", "the missing ones are only")
    which = f"line {', '.join(map(str, lines[:LISTED]))} of the cell stores the others" if len(lines) else ""
    return "; ".join(filter(None, (place, which, counted(run, name, missing))))  # which may ask


def axes_of(run, name: str) -> tuple[str, ...]:
    return next(tuple(placed.spec.axes) for placed in run.placed if placed.spec.name == name)


def counted(run, name: str, missing: np.ndarray) -> str:
    """Explain missing elements by the number that programs store: none, too few, or the same ones twice."""
    size = missing.size
    itemsize = next(placed.storage.itemsize for placed in run.placed if placed.spec.name == name)
    rows = [(one, one["tensors"].get(name, {}).get("store")) for one in run.launches]
    rows = [(launch, row) for launch, row in rows if row and row["requested"]]
    if not rows:
        return (
            f"no program stores anything in {name}: does its store run, and does its mask leave any lane on?"
        )
    total = sum(row["requested"] for _, row in rows) // itemsize
    unique = size - int(missing.sum())
    if total > unique and total >= size:
        if all(launch["programs"] == 1 for launch, _ in rows):
            return (
                f"the program stores {total:,} elements, but only {unique:,} different ones: does the store's address move on "
                "from one iteration of its loop to the next?"
            )
        return (
            f"all programs together store {total:,} elements, but only {unique:,} different ones, so they overlap: is "
            "tl.program_id multiplied by the size of a block, and by the right stride?"
        )
    idle = sum(launch["programs"] - row["programs"] for launch, row in rows)
    if idle and len(rows) == 1:
        return (
            f"{idle:,} of {rows[0][0]['programs']:,} programs store nothing: which part does each take for its own, and what do its "
            "conditions and masks leave of it?"
        )
    most = sum(launch["programs"] * row["busiest"] for launch, row in rows) // itemsize
    if most < size and missing.reshape(-1)[-1]:
        count = sum(launch["programs"] for launch, _ in rows)
        who = f"{count:,} programs store" if count > 1 else "one program stores"
        return (
            f"{who} at most {most:,} of the {size:,} elements: the grid has too few programs, or each of them covers too little "
            f"(the grid is {' and '.join(str(tuple(step.grid)) for step in run.plan.steps)})"
        )
    return "the programs pass over these: where do their offsets and loops begin and end, and what does the store's mask leave out?"
