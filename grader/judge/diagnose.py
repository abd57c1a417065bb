"""Compare one case of a kernel answer with the reference. A Failed says what went wrong first, and which known mistake
explains the result."""

from dataclasses import replace

import numpy as np

from grader.box import warm
from grader.judge import stored, weak_atomics
from grader.judge.compare import Difference, difference
from grader.judge.failed import Failed, Refusal, Unclear
from grader.judge.kernel_evidence import Run
from grader.judge.pattern import Pattern
from grader.judge.source import loop_around, missing_parentheses
from grader.questions import NO_OUTPUT
from tilescope.machine.order import NO_BARRIER

UNTOLD = "values that differ"
HOW = "how that element is computed: which program writes it, and what it reads"
MOST_KNOWN = 2  # mistakes that are named where several give the same output, above which none is
NEARLY_ALL = 0.75  # of the wrong elements: where two roundings meet, some go the other way
EXPLAINED = 0.5  # of the distance to the right values, because a mistake's own rounding is never known


def judge_case(question, run: Run, others: list[Run] = (), evidence=None) -> None:
    """Raise what is wrong with a case that ran to its end. A diagnosis must also explain the runs in `others`.
    `evidence` can run the case again with other values in masked-off lanes."""
    try:
        _judge_case(question, run, others, evidence)
    except Failed as failed:
        error = failed.facts.get("error") or {}
        if (
            evidence
            and error.get("kind") == "OverLimit"
            and (around := loop_around(evidence.source, error["line"]))
        ):
            # time runs out anywhere, but a loop is what spends it
            failed.look = f"the loop in line {around} of the cell: {WHERE_TO_LOOK['OverLimit']}"
        if evidence and not failed.facts.get("known") and (said := missing_parentheses(evidence.source)):
            failed.look, failed.facts["known"] = said, True
        raise


def _judge_case(question, run: Run, others: list[Run], evidence) -> None:
    poisoned = evidence.poisoned if evidence else lambda run: []
    try:
        judge_effects(run, evidence)
    except Failed as failed:
        if failed.told == RACE and (known := recognise(question, run, others)):
            failed.look, failed.facts["known"] = known, True  # why they meet, if the other outputs tell
        if failed.told == UNWRITTEN:  # another launch explains this better, if one makes the case right
            failed.look = left_out(question, run, others) or failed.look
        raise
    except Unclear:
        _judge_values(question, run, others, poisoned, evidence)  # wrong in the order that ran is wrong
        raise
    _judge_values(question, run, others, poisoned, evidence)
    if evidence and run.outcome.header.get("masked_lines"):
        judge_lanes(question, run, evidence)
    if evidence and any(launch["atomics"] for launch in run.launches):
        judge_order(question, run, evidence)


def judge_order(question, run: Run, evidence) -> None:
    """Raise Failed where a result depends on the order in which programs reach an atomic."""
    again = evidence.shuffled(run)
    if again is None:
        return
    refuse_error(again)
    sentence, _ = differs(
        question, run.inputs, run.case, {name: again.output(name) for name in run.want}, run.want
    )
    if sentence:
        raise Failed(
            f"{describe(run)}, with its programs in another order: {sentence}",
            ARRIVAL,
            told=UNTOLD,
            known=True,
        )


def judge_lanes(question, run: Run, evidence) -> None:
    """Raise Failed where a result depends on lanes that a mask has switched off and no other= fills."""
    again = evidence.with_zeros(run)
    refuse_error(again)
    got = {name: again.output(name) for name in run.want}
    sentence, worst = differs(question, run.inputs, run.case, got, run.want)
    if sentence:
        look = masked_lanes(run, worst, evidence.poisoned) or UNFILLED.format(said_lines(run))
        raise Failed(
            f"{describe(run)}, with zeros in lanes that masks switch off: {sentence}", look, told=UNTOLD
        )


ARRIVAL = (
    "the atomics: programs reach them in another order each time, and others may come between two atomics of a program. "
    "tl.program_id tells which program this is"
)
UNFILLED = (
    "lanes that the mask of a load switches off (line {}) reach the output, and hold no value: they need an other=, "
    "or the mask switches off too many"
)


def said_lines(run: Run) -> str:
    return ", ".join(map(str, run.outcome.header["masked_lines"][:4]))


def _judge_values(question, run: Run, others: list[Run], poisoned, evidence) -> None:
    got = {name: run.output(name) for name in run.want}
    sentence, worst = differs(question, run.inputs, run.case, got, run.want)
    if sentence:
        known = read_too_early(run, worst) or recognise(question, run, others)
        look = known or "; ".join(filter(None, where(run, got, worst, poisoned, evidence))) or HOW
        pattern, _ = pattern_of(run, got, worst)
        unstored = pattern is not None and bool(stored.unstored(pattern))
        raise Failed(f"{describe(run)}: {sentence}", look, told=UNTOLD, known=bool(known), unstored=unstored)


def where(run: Run, got: dict, worst: Difference | None, poisoned, evidence) -> list[str]:
    """Describe wrong values that no known mistake explains. Say nothing about a hidden case."""
    if run.hidden:
        return []
    pattern, said = pattern_of(run, got, worst)
    stored_by = stored.wrong(evidence, run, pattern, worst) if pattern is not None else ""
    return [masked_lanes(run, worst, poisoned), stored_by, said]


def judge_effects(run: Run, evidence=None) -> None:
    """Raise what is wrong before any value is looked at: an error, a race, or an unwritten element. Raise Unclear if
    nothing visible is wrong. With `evidence`, look for the cause."""
    refuse_error(run)
    for sort, trouble in TROUBLES.items():
        if found := trouble(run, evidence):
            came, look = found
            raise Failed(f"{describe(run)}: {came}", look, told=sort)
    if run.outcome.header.get("undecided"):
        raise Unclear(f"{describe(run)}: {run.outcome.header['undecided']}")


def refuse_race(run: Run) -> None:
    """Raise Failed where programs or lanes met that no order keeps apart."""
    for sort in (RACE, LANES):
        if found := TROUBLES[sort](run, None):
            came, look = found
            raise Failed(f"{describe(run)}: {came}", look, told=sort)


def refuse_error(run: Run) -> None:
    """Raise the error that the jail or the machine reported for this case."""
    error = run.outcome.error
    if error and error["stage"] == "text":
        raise Refusal(error["message"], error["line"])
    if error:
        raise from_error(error, describe(run))


def differs(question, inputs, case, got: dict, want: dict) -> tuple[str, Difference | None]:
    """Return ("", None) if every output is right, else a sentence and the worst element."""
    if question.agree:
        return question.agree(inputs, case, got, want), None
    allowed = question.tolerance(inputs, case, want)
    for name, target in want.items():
        result = in_range(question, case, name, in_float64(got[name]), target, allowed[name])
        worst = difference(name, result, target, allowed[name], name in question.signed)
        if worst:
            return worst.sentence(), worst
    return "", None


def in_range(question, case, name: str, got: np.ndarray, want: np.ndarray, allowed) -> np.ndarray:
    """Return results in which an infinity or the largest number of fp16 stands for what is wanted, where that is beyond
    fp16's range, or may be by what is allowed."""
    dtypes = [case.dtype_of(tensor) for tensor in question.tensors if tensor.name == name]
    if dtypes != ["fp16"] or got.shape != want.shape:
        return got
    most = float(np.finfo(np.float16).max)
    with np.errstate(invalid="ignore"):
        beyond = (np.abs(want) + allowed > most) & (np.abs(got) >= most) & (np.sign(got) == np.sign(want))
    return np.where(beyond, want, got)


def in_float64(array: np.ndarray) -> np.ndarray:
    """Convert to float64. Unwritten memory may hold a NaN that numpy warns of."""
    with np.errstate(invalid="ignore"):
        return array.astype(np.float64)


def describe(run: Run) -> str:
    """Describe a public case in full, a hidden one only by its kind."""
    return named(run.case, run.hidden)


def named(case, hidden: bool) -> str:
    """Describe a case in full, or only by its kind."""
    return f"a hidden case ({case.kind})" if hidden else in_full(case)


def in_full(case) -> str:
    sizes = ", ".join(f"{k} = {v}" for k, v in case.sizes.items())
    layout = "".join(f", {name} {how}" for name, how in case.layout.items())
    return f"{sizes}, {case.dtype}{layout}"


WAITING, WAIT = "Waiting", "wait for each other in a loop"  # a kind of OverLimit, and its words
WHERE_TO_LOOK = {
    "OutOfBounds": "what its index is made of (the program's own part, the strides, what earlier lines compute or load), and its mask",
    "Deadlock": "which program does what the others wait for, and whether it ever gets there: programs run in any order",
    "OverLimit": "how much it does: how often its loops run, whether one never ends, how large its blocks and its grid are",
    WAITING: "the loop in which a program waits for another one: a GPU runs only as many programs at a time as it has room "
    "for, and those that wait may keep the others out. The programs of a second launch start when those of the first have "
    "ended",
    "WrittenInput": "which pointer it is given",
    "NotImplementedError": "replace that line by your own code",
    "KeepsState": "what lives outside launch(p) and changes between calls: a counter, a cache whose key leaves out a size, random numbers",
    "SystemExit": "what ends the process: exit, quit or sys.exit; an answer returns instead",
    warm.OVERFULL: "how much it holds, prints or starts at once",
    warm.LATE: "what it waits for: a sleep, a lock, an input, another process",
    warm.ENDLESS: "a loop that never ends, or far too many values at once",
    warm.KILLED: "how many values it holds at once",
    warm.CRASHED: "what reaches below Python, such as ctypes or a signal to itself, and calls that nest without an end",
    warm.EXITED: "what ends the process, such as os._exit: an answer returns, also where it finds something amiss",
    warm.FORGED: "what it writes to files and pipes that it has not opened itself",
    **dict.fromkeys(
        ("ModuleNotFoundError", "ImportError"),
        "leave this import out. An answer has numpy, Triton where the question is about a kernel, and Python's own modules; "
        "the lab's other cells import what belongs to the course",
    ),
}
PLACES = {  # where no line is to blame
    "launch": "your launch function, and what it names",
    "pack": "what the function returns, and the shapes that your launch function names for it",
}
OUTSIDE, UNWRITTEN = "an access outside a tensor", "elements that were never written"
RACE, LANES = "two programs that race", "lanes of one program that race"
ERROR_IN_WORDS = {
    "OutOfBounds": OUTSIDE,
    "WrittenInput": "a written input",
    "Deadlock": "programs that wait for ever",
    **dict.fromkeys(("OverLimit", WAITING), "more than a run may use"),
    **dict.fromkeys((warm.OVERFULL, warm.LATE, warm.ENDLESS, warm.KILLED), "its process was stopped"),
    warm.CRASHED: "its process crashed",
    **dict.fromkeys((warm.EXITED, "SystemExit"), "its process ended itself"),
    warm.FORGED: warm.WROTE,
    "NotImplementedError": "not started",
}


STAGES_OF_A_CASE = ("kernel", "call", "process", "launch", "worker", "pack")


def from_error(error: dict, where: str) -> Failed:
    """Turn an exception of the answer, or the end of its process, into a failure."""
    kind, message, line = error["kind"], error["message"], error["line"]
    if kind == "NotImplementedError":
        came = "not started: the cell still raises NotImplementedError"
        return Failed(came, WHERE_TO_LOOK[kind], told=ERROR_IN_WORDS[kind], error={"kind": kind})
    kind = WAITING if kind == "OverLimit" and WAIT in message else kind
    place = f"line {line} of the cell" if line else PLACES.get(error["stage"], "the cell as a whole")
    if kind == "NameError":
        place += ": an answer stands alone, so what it calls is defined in its own cell"
    look = (
        f"{place}: {WHERE_TO_LOOK[kind]}"
        if kind in WHERE_TO_LOOK and line
        else WHERE_TO_LOOK.get(kind, place)
    )
    prefix = f"{where}: " if where and error["stage"] in STAGES_OF_A_CASE else ""
    return Failed(f"{prefix}{message}", look, told=ERROR_IN_WORDS.get(kind, "an exception"), error=error)


def _race(run: Run, evidence):
    races = [race for race in run.outcome.header.get("races") or [] if race["earlier"] is None]
    if not races:
        return None
    race = races[0]
    line = f" (line {race['line']})" if race.get("line") else ""
    where = race.get("place") or f"element {race['element']} of {race['tensor']}"
    if race["how"].endswith(NO_BARRIER):
        return (
            f"two programs use {where} ({race['how']}){line}: one thread does the atomic, and others may not have stored yet",
            "tl.debug_barrier() between that store and the atomic: no thread goes on until all have stored",
        )
    weak = weak_atomics.to_blame(evidence, run) if evidence else ""
    return (
        f"two programs use {where} ({race['how']}){line}, so the result depends on which is first",
        weak or owners(run, race),
    )


def _lanes(run: Run, evidence):
    races = [race for race in run.outcome.header.get("races") or [] if race["earlier"] is not None]
    if not races:
        return None
    race = races[0]
    late, _, early = race["how"].split()[:3]
    does, did = {"read": "loads", "write": "stores", "atomic": "changes"}[late], DID[early]
    return (
        f"line {race['line']} {does} element {race['element']} of {race['tensor']}, which another lane of the same program {did} "
        f"at line {race['earlier']}, and no barrier is between",
        "tl.debug_barrier() between the two: until all lanes have come there, none goes on, and each then sees what all have stored"
        + "; or use the block that was stored, which the program still has, and load nothing"
        * (late == "read" and early == "write"),
    )


DID = {"read": "loaded", "write": "stored"}


def _unwritten(run: Run, evidence):
    for placed in run.placed:
        if placed.spec.role != "out":
            continue
        stores = placed.view(run.outcome.arrays[f"stores:{placed.spec.name}"])
        missing = np.argwhere(stores == 0)
        if len(missing):
            name, place = placed.spec.name, ", ".join(map(str, missing[0]))
            look = (
                "" if run.hidden or evidence is None else stored.unwritten(evidence, run, name, stores == 0)
            )
            return (
                f"{len(missing):,} of {stores.size:,} elements of {name} were never written, the first is {name}[{place}]",
                f"{placed.spec.unclaimed}; if that is done, " * bool(placed.spec.unclaimed)
                + (look or NOT_REACHED),
            )
    return None


NOT_REACHED = "the grid (does it cover the last, ragged tile?), the places that a program makes of its id, and the mask of the store"
TROUBLES = {RACE: _race, LANES: _lanes, UNWRITTEN: _unwritten}


def read_too_early(run: Run, worst: Difference | None) -> str:
    """Return the lines that read an output, or added to it, before any write to the same element."""
    rows = run.outcome.header.get("read_unwritten") or []
    early = [row for row in rows if worst is None or row["tensor"] == worst.name]
    if not early:
        return ""
    name = early[0]["tensor"]
    lines = sorted({row["line"] for row in early if row["tensor"] == name})
    return (
        f"line {', '.join(map(str, lines))} reads {name} or adds to it where nothing has been written: until then an "
        "output holds anything, so keep the sum in a block of the kernel, or clear it in a launch before"
    )


def owners(run: Run, race: dict) -> str:
    """Say which programs meet, that an element has one owner, and what its address is made of."""
    late, *_, early = race["how"].split()[:3]
    grid = run.plan.steps[race["launch"]].grid
    used = max((axis + 1 for axis, size in enumerate(grid) if size > 1), default=1)
    met = sorted(
        ids[0] if used == 1 else tuple(ids[:used]) for ids in (race["other"], race["program"]) if ids
    )
    who = f"programs {met[0]} and {met[1]}" if len(met) == 2 else "two programs"
    if {late, early} == {"read", "write"}:
        return (
            f"{who} run in any order, and one loads what the other stores. If it needs that number, load it in a second launch; else "
            "look at what both addresses are made of: the program's ids times a block's size, strides, masks"
        )
    does = "both store to it" if late == early == "write" else "meet there"
    return (
        f"{who} {does}, and no two may own the same element. What is its address made of: the program's ids times a block's "
        "size, a stride for each axis, and the mask?"
    )


def masked_lanes(run: Run, worst: Difference | None, poisoned) -> str:
    """Return the line to change if a masked load without other= may have reached the output."""
    if worst is None or not run.outcome.header.get("masked_lines"):
        return ""
    lines = [row["line"] for row in poisoned(run) if worst.name in row["outputs"]]
    if not lines:
        return ""
    said = ", ".join(map(str, lines[:4]))
    return UNFILLED.format(said)


def pattern_of(run: Run, got: dict, worst: Difference | None) -> tuple[Pattern | None, str]:
    """Return the first wrong output's pattern, and what its wrong elements have in common."""
    patterns = (
        [worst.pattern]
        if worst
        else [picked for name in got if (picked := _picks(name, got[name], run.want[name]))]
    )
    given = {name: values for name, values in run.inputs.items() if np.ndim(values) == 1}
    axes = {placed.spec.name: tuple(placed.spec.axes) for placed in run.placed}
    patterns = [
        replace(one, axes=axes.get(one.name, ()), stored=stored_in(run, one.name))
        for one in patterns
        if one.wrong.any()
    ]
    said = next((said for one in patterns if (said := one.sentence(given))), "")
    return (patterns[0] if patterns else None), said


def stored_in(run: Run, name: str) -> np.ndarray | None:
    """Return which elements of a tensor were stored to, if it also keeps what was there before."""
    placed = next((one for one in run.placed if one.spec.name == name), None)
    stores = run.outcome.arrays.get(f"stores:{name}")
    if placed is None or stores is None or placed.spec.role != "inout":
        return None
    return placed.view(stores) > 0


def _picks(name: str, came: np.ndarray, want: np.ndarray) -> Pattern | None:
    """Return the pattern of wrong whole numbers, which name something such as a token, or None."""
    if came.dtype.kind not in "iu" or came.shape != want.shape:
        return None
    return Pattern(name, came.astype(np.float64), np.asarray(want, np.float64), came != want)


def recognise(question, run: Run, others: list[Run]) -> str:
    """Return the sentence of a mistake that gives the whole output of this case and of every other run. If two
    mistakes do, return both. A tensor that programs race for can hold anything, so only the other outputs count."""
    runs = [run, *(one for one in others if one is not run and not one.outcome.error and one.want)]
    runs.sort(key=lambda one: sum(np.size(want) for want in one.want.values()))  # a small one rules most out
    known = []
    for mistake in question.mistakes:
        if mistake.sentence in known:
            continue
        # with the same choice of tiles in all cases
        if any(
            all(_gives(question, output, one) for one in runs) and _explains(question, output, runs)
            for output in mistake.outputs
        ):
            known.append(mistake.sentence)
    return "; or: ".join(known) if len(known) <= MOST_KNOWN else ""


def left_out(question, run: Run, others: list[Run]) -> str:
    """Return the sentence of a mistake that leaves exactly the unwritten elements of this case and of every other run."""
    runs = [run, *(one for one in others if one is not run and not one.outcome.error)]
    for mistake in question.mistakes:
        if any(all(_misses(misses, one) for one in runs) for misses in mistake.misses):
            return mistake.sentence
    return ""


def _misses(misses, run: Run) -> bool:
    flags = misses(run.case)
    seen = [
        (run.outcome.arrays[f"stores:{one.spec.name}"], one)
        for one in run.placed
        if one.spec.name in flags and f"stores:{one.spec.name}" in run.outcome.arrays
    ]
    return all(np.array_equal(one.view(stores) == 0, flags[one.spec.name]) for stores, one in seen)


def _explains(question, output, runs: list[Run]) -> bool:
    """Return whether the wrong elements are far nearer to the mistake than to the right values. A mistake that barely shows
    in this case, or that leaves some wrong elements open, explains nothing, and neither does one that gives zeros alone, as
    many others do."""
    explained = wrong = 0
    shows = False
    for run in runs:
        with np.errstate(all="ignore"):
            would = output(run.inputs, run.case)
            for name in settled(run) & would.keys():
                came, mistaken, want = (
                    in_float64(a)
                    for a in (run.output(name), np.asarray(would[name]), np.asarray(run.want[name]))
                )
                bad = _off(question, run, name, came, want)
                shows |= bool((mistaken != 0).any())
                to_mistake, to_right = (
                    np.where(_alike(came, to), 0.0, np.abs(came - to)) for to in (mistaken, want)
                )
                wrong += int(bad.sum())
                explained += int((bad & ~(to_mistake >= EXPLAINED * to_right)).sum())
    return shows and wrong > 0 and explained >= NEARLY_ALL * wrong


def _alike(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return (a == b) | (np.isnan(a) & np.isnan(b))


def _off(question, run: Run, name: str, came: np.ndarray, want: np.ndarray) -> np.ndarray:
    """Return which elements of an output are wrong."""
    allowed = 0.0 if question.agree else question.tolerance(run.inputs, run.case, run.want)[name]
    return ~(_alike(came, want) | (np.abs(came - want) <= allowed))


def settled(run: Run) -> set[str]:
    """Return the outputs for which no programs race."""
    return run.want.keys() - {race["tensor"] for race in run.outcome.header.get("races") or []}


def _rounding_slack(would: np.ndarray) -> np.ndarray:
    """Return the rounding that a match may differ by. A mistake is recomputed in float64 while the answer rounded on
    its way, near the mistake's size or the largest element's."""
    largest = np.abs(would[np.isfinite(would)]).max(initial=0.0)
    return np.where(np.isfinite(would), 1e-2 * np.abs(would) + 3e-3 * largest, 0.0)


def _gives(question, output, run: Run) -> bool:
    try:
        with np.errstate(all="ignore"):
            would = output(run.inputs, run.case)
            want = run.want | would
            allowed = question.tolerance(run.inputs, run.case, want)
            slack = {
                n: np.maximum(allowed[n], _rounding_slack(np.asarray(w, np.float64))) for n, w in want.items()
            }
        return all(
            difference(name, in_float64(run.output(name)), target, slack[name]) is None
            for name, target in want.items()
            if name in settled(run)
        )
    except NO_OUTPUT:
        return False
