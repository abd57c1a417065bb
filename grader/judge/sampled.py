"""Judge values of the compiled case: the whole case if that is cheap, else drawn programs on its full-size inputs.

Of a corner, which is larger still, drawn programs run alone."""

import itertools
import math
import operator
from concurrent.futures import Future
from dataclasses import replace
from functools import partial

import numpy as np

from grader.box.warm import Outcome
from grader.judge import ahead
from grader.judge.diagnose import (
    UNTOLD,
    UNWRITTEN,
    describe,
    differs,
    judge_case,
    judge_effects,
    refuse_error,
    refuse_race,
)
from grader.judge.failed import Failed, Unclear
from grader.judge.kernel_evidence import (
    COMPILED,
    CORNER,
    EVERY_PROGRAM,
    FARS,
    IN_PART,
    LIMITED_IN_PART,
    METERED,
    ON_CONDITION,
    PAIRS,
    WAITING,
    WHOLE,
    KernelEvidence,
    Run,
    numbers,
)
from grader.questions import Case, KernelQuestion, corner, on_condition
from grader.questions.far import Whole, Written
from tilescope.machine.run import MOST_PROGRAMS

PROGRAMS_OF_EACH = 8  # launch, of programs that need one another
# drawn ones, in addition to the corners of the grid
PROGRAMS = {COMPILED: 24, CORNER: 6, **dict.fromkeys(FARS, 4)}
FEWEST, SHARE = 3, 8  # but of a small grid no more than an eighth, since each then has much of the work
# numbers of one program of a far corner, of which one runs then, or of all that run of another corner
A_LOT = 1 << 21
TOO_MUCH = 1 << 24  # and a part of it, until its time is up
A_NUMBER = 256  # FLOP that take as long as one number
FAR_S = 12  # of processor time, since a program that does too much there could run for minutes
PART_S, PAIR_S = 4, 2  # for a part of one
EVERY_S = 8  # for all programs of a corner, of which drawn ones are judged in any case
OF_EVERY_PROGRAM = {"seconds": 2 * EVERY_S}
WHOLE_S = 90  # of processor time, where programs depend on one another and all must run
DRAWN = 901  # the purpose of the drawing
WAVES = 900  # and of drawing waves of a far corner
AT_COMPILED = "at the size that is compiled"
STORED = (
    "which part of the output no program stores at this size: the grid, how a program's number becomes its tile, and the mask "
    "of the store"
)
ALL_STORES = (
    (1 << 26) // corner.PART** 2
)  # elements of all outputs of a far corner, up to which every program shows where it stores
SOME_STORES = (
    1 << 22,
    1 << 21,
    1 << 19,
)  # else programs are drawn that store about so many, as the machine has room
MOST_DRAWN = 1 << 18  # programs, since a request names them all
MOST_OF_ONE = 1 << 24  # elements that one of them may store, else none of a far corner shows it
SURE = 4  # margin in standard errors, and for what so rare programs store that none was drawn
MOST_MET = 4  # pairs of a corner's programs that run next to one another


def judge_compiled_case(evidence: KernelEvidence) -> None:
    question, plan = evidence.question, evidence.plan(COMPILED)
    if isinstance(plan, dict) or question.sampled is None:
        return judge_case(question, evidence.run(COMPILED), [], evidence)
    if depends(evidence, COMPILED):
        run = evidence.run(COMPILED, **how_to_run(evidence, COMPILED))
        try:
            judge_effects(run)
        except Unclear:
            judge_written(evidence, run, whole=True)  # wrong in the order that ran is wrong
            raise
        judge_written(evidence, run, whole=True)
        return judge_lanes(evidence, run, whole=True)
    return judge_drawn(evidence, COMPILED)


def judge_drawn(evidence: KernelEvidence, purpose: int) -> None:
    """Judge what programs drawn from the grid of a large case store, and whether all of them store everything."""
    if isinstance(evidence.plan(purpose), dict):
        refuse_error(evidence.run(purpose))
    run = evidence.run(purpose, **how_to_run(evidence, purpose))
    no_room = purpose in FARS and ran_out_of(run.outcome, "bytes")
    if no_room and not run.outcome.arrays:
        return None
    # what it wrote until then is judged
    cut_short = (in_part(evidence, purpose) or no_room) and is_over(run.outcome)
    if not cut_short:
        refuse_error(run)
    refuse_race(run)
    judge_written(evidence, run, whole=False)
    if not cut_short:
        judge_lanes(evidence, run, whole=False)
    return judge_places(evidence, run, purpose)


def how_to_run(evidence: KernelEvidence, purpose: int) -> dict:
    """Return which programs of a large case run, what is counted, and for how long."""
    if purpose == COMPILED and depends(evidence, COMPILED):
        return {"seconds": WHOLE_S, "waves_of": evidence.case(COMPILED).sm_count}
    programs = chosen(evidence, purpose)
    how = {"programs": [programs], "counting": "full" if runs_once(purpose, programs) else "values"}
    if purpose not in FARS:
        return how
    short = PAIR_S if purpose in PAIRS else PART_S
    return how | {"seconds": short if in_part(evidence, purpose) else FAR_S}


def in_part(evidence: KernelEvidence, purpose: int) -> bool:
    """Return whether a program of a far corner does too much for a check, which then judges a part of it."""
    return purpose in FARS and work_of_one(evidence, purpose) > (A_LOT if purpose in PAIRS else TOO_MUCH)


def runs_once(purpose: int, programs: list[int]) -> bool:
    """Return whether a corner's programs are counted in full at once: one that does much, not a few that do little."""
    return len(programs) == 1 and purpose in LIMITED_IN_PART and purpose not in FARS


def is_over(outcome: Outcome) -> bool:
    """Return whether a run ended where a limit of the machine was reached, with what it had written until then."""
    return (outcome.error or {}).get("kind") == "OverLimit" and bool(outcome.arrays)


def ran_out_of(outcome: Outcome, *what: str) -> bool:
    """Return whether the machine ran out of one of these, which no answer is blamed for in a case that is larger than it."""
    return (outcome.error or {}).get("what") in what


def takes_long(evidence: KernelEvidence, purpose: int) -> bool:
    """Return whether all programs of a corner take too long here, by what the metered case took, or in the end."""
    if isinstance(evidence.plan(purpose), dict):
        return False
    if too_long(evidence, purpose, evidence.runs.get(METERED)):
        return True
    return ran_out_of(evidence.run(purpose, **OF_EVERY_PROGRAM).outcome, "seconds")


def too_long(evidence: KernelEvidence, purpose: int, metered: Run | None) -> bool:
    """Return whether a corner's programs would take too long, as many numbers as they have more than the metered case."""
    if metered is None or metered.outcome.error:
        return False
    times = numbers(evidence.question, evidence.cases[purpose]) / numbers(evidence.question, metered.case)
    return times * metered.outcome.cpu_s > EVERY_S


def every_program(evidence: KernelEvidence, metered: Future) -> Run | None:
    """Run a corner whole once the metered case has ended, unless that takes too long."""
    if too_long(evidence, EVERY_PROGRAM, metered.result()) or isinstance(evidence.plan(EVERY_PROGRAM), dict):
        return None
    return evidence.run_once(EVERY_PROGRAM, **OF_EVERY_PROGRAM)


def depends(evidence: KernelEvidence, purpose: int) -> bool:
    """Return whether programs may need what others have stored, so that all must run."""
    plan = evidence.plan(purpose)
    if isinstance(plan, dict):
        return False
    return len(plan.steps) > 1 or bool(plan.scratch) or uses_atomics(evidence, purpose)


def whole_corners(evidence: KernelEvidence) -> tuple[int, ...]:
    """Return the corners that run whole. Programs that wait for one another run one by one, and so in a smaller one."""
    if one_by_one(evidence):
        return (WAITING,)
    return WHOLE


def one_by_one(evidence: KernelEvidence) -> bool:
    """Return whether programs wait for one another, which takes them long here."""
    return WAITING in evidence.cases and all(waits(evidence, one) for one in (METERED, *WHOLE))


def whole_on_condition(evidence: KernelEvidence) -> list[int]:
    """Return the cases at sizes of the cell's conditions that run whole, since their programs need one another."""
    most = corner.FEW if one_by_one(evidence) else corner.WHOLE
    there = [purpose for purpose in ON_CONDITION if purpose in evidence.cases]
    return [
        purpose
        for purpose in there
        if not affordable(evidence, purpose) and most.holds(evidence.question, evidence.cases[purpose])
    ]


def waits(evidence: KernelEvidence, purpose: int) -> bool:
    """Return whether programs may wait in a loop for another program's action."""
    if purpose not in evidence.cases:
        return True
    plan = evidence.plan(purpose)
    texts = () if isinstance(plan, dict) else map(evidence.ir_of, plan.steps)
    return any("scf.while" in text and "tt.atomic" in text for text in texts)


def judge_lanes(evidence: KernelEvidence, run: Run, whole: bool) -> None:
    """Run the same programs once more with zeros in lanes that no other= fills."""
    if run.outcome.header.get("masked_lines"):
        programs = {} if whole else {"programs": [chosen(evidence, purpose_of(evidence, run))]}
        again = evidence.with_zeros(run, **programs)
        refuse_error(again)
        judge_written(evidence, again, whole)


def uses_atomics(evidence: KernelEvidence, purpose: int) -> bool:
    """Search the machine's own print for atomics, because the jail's text can't be trusted."""
    printed = map(evidence.ir_of, evidence.plan(purpose).steps)
    return any(word in text for text in printed for word in ("tt.atomic", "tt.descriptor_reduce"))


def purpose_of(evidence: KernelEvidence, run: Run) -> int:
    return next((one for one in IN_PART if run.case is evidence.known.get(one)), COMPILED)


def chosen(evidence: KernelEvidence, purpose: int) -> list[int]:
    drawn = evidence.rng(DRAWN if purpose == COMPILED else DRAWN + purpose)
    grid = evidence.plan(purpose).steps[0].grid
    last = [math.prod(grid) - 1] * (purpose in PAIRS)  # where a product of both sizes is largest
    if purpose in FARS and work_of_one(evidence, purpose) > A_LOT:
        return last or [int(drawn.integers(math.prod(grid)))]
    found = programs(grid, drawn, PROGRAMS.get(purpose, PROGRAMS[CORNER]))
    if purpose in IN_PART and len(found) > (most := max(1, int(A_LOT // work_of_one(evidence, purpose)))):
        found = [*drawn.choice(found, most, replace=False).tolist(), *last]
    telling = (ids for ids in evidence.telling.get(purpose, []) if all(map(operator.lt, ids, grid)))
    return sorted({*found, *(linear(ids, grid) for ids in telling)})


def work_of_one(evidence: KernelEvidence, purpose: int) -> float:
    """Return the share of one program in a corner: numbers of all tensors, and FLOP."""
    question, case = evidence.question, evidence.cases[purpose]
    useful = question.useful(case) if question.useful else 0
    programs = max(math.prod(step.grid) for step in evidence.plan(purpose).steps)
    return (numbers(question, case) + useful / A_NUMBER) / programs


def of_each_launch(evidence: KernelEvidence, purpose: int) -> Run | None:
    """Run programs drawn from each launch of a corner whose programs need one another, and estimate the spending of all
    programs from that. Their results mean nothing, since they lack the values that other programs store."""
    plan = evidence.plan(purpose)
    if isinstance(plan, dict) or not runs_in_part(evidence, purpose) or waits(evidence, purpose):
        return None
    rng, most = evidence.rng(DRAWN + 2), 1 if work_of_one(evidence, purpose) > A_LOT else PROGRAMS_OF_EACH
    grids = [math.prod(step.grid) for step in plan.steps]
    chosen = [sorted({int(n) for n in rng.integers(0, grid, min(most, grid))}) for grid in grids]
    inputs, placed = evidence.draw(purpose)
    outcome = evidence.interpret(purpose, placed, programs=chosen, counting="full", seconds=FAR_S)
    if outcome.error or outcome.header["undecided"] or len(outcome.header["launches"]) < len(grids):
        return None
    launches = outcome.header["launches"]
    for launch, grid, some in zip(launches, grids, chosen, strict=True):
        times_more(launch, grid / len(some))
    return Run(evidence.cases[purpose], True, plan, placed, inputs, {}, outcome)


def times_more(counts: dict, factor: float) -> None:
    """Multiply all that was counted of a launch."""
    for name, found in counts.items():
        if isinstance(found, dict):
            times_more(found, factor)
        elif isinstance(found, int | float):
            counts[name] = found * factor


def affordable(evidence: KernelEvidence, purpose: int) -> bool:
    """Return whether a check can run drawn programs of a corner, each alone."""
    there = purpose in evidence.cases and evidence.question.in_corners is not None
    return there and not depends(evidence, purpose)


def runs_in_part(evidence: KernelEvidence, purpose: int) -> bool:
    """Return whether a corner's grid isn't too large for the machine, nor the share of one of its programs."""
    programs = max(math.prod(step.grid) for step in evidence.plan(purpose).steps)
    return programs <= MOST_PROGRAMS and work_of_one(evidence, purpose) <= TOO_MUCH


def programs(grid: tuple[int, int, int], rng: np.random.Generator, drawn: int) -> list[int]:
    """Return linear numbers of the grid's corners and of programs drawn from the whole grid."""
    x, y, z = grid
    count = min(drawn, max(FEWEST, math.prod(grid) // SHARE))
    corners = {linear(ids, grid) for ids in itertools.product((0, x - 1), (0, y - 1), (0, z - 1))}
    return sorted(corners | {int(n) for n in rng.integers(0, math.prod(grid), count)})


def linear(ids: tuple[int, int, int], grid: tuple[int, int, int]) -> int:
    """Return a program's number in its grid."""
    return ids[0] + grid[0] * (ids[1] + grid[1] * ids[2])


def at(run: Run) -> str:
    """Say which large case this is."""
    return (
        describe(run)
        if run.case.kind in (corner.KIND, corner.FAR_KIND, *on_condition.KINDS)
        else f"{AT_COMPILED} ({describe(run)})"
    )


def stores(evidence: KernelEvidence, run: Run, **how) -> Outcome:
    """Return the stores of all programs of a case, or of some, addresses only, without computing any value."""
    return judged_stores(evidence, run, launch_stores(evidence, run, **how), **how)


def launch_stores(evidence: KernelEvidence, run: Run, **how) -> Outcome:
    how = {"operation": "stores", "seconds": WHOLE_S, **how}
    return evidence.launch(run.case, run.plan, evidence.texts(purpose_of(evidence, run)), run.placed, **how)


def judged_stores(evidence: KernelEvidence, run: Run, outcome: Outcome, **how) -> Outcome:
    """Return the stores that the machine found. Raise what is wrong with them, unless the machine had no room."""
    evidence.count(outcome)
    if (
        is_over(outcome)
        and how.get("programs")
        or purpose_of(evidence, run) in FARS
        and ran_out_of(outcome, "bytes", "seconds")
    ):
        return outcome
    refuse_error(replace(run, outcome=outcome))
    if outcome.header["undecided"]:
        raise Unclear(f"{describe(run)}: {outcome.header['undecided']}")
    return outcome


def judge_places(evidence: KernelEvidence, run: Run, purpose: int) -> None:
    """All programs of the grid, so that none can be left out. Of the largest corners some, by whose stores all are judged."""
    whole, grid = stored(run), math.prod(run.plan.steps[0].grid)
    if not all_show(run, purpose):
        return judge_some_places(evidence, run, whole, grid)
    how = how_all_show(run, purpose)
    launch = partial(launch_stores, evidence, run, **how)
    outcome = ahead.result(evidence, ("stores", purpose), launch) or launch()
    evidence.places[purpose] = judged_stores(evidence, run, outcome, **how)
    if outcome.error and purpose in PAIRS:
        return None
    if outcome.error:  # all are too many
        return judge_some_places(evidence, run, whole, grid)
    for name, missing in outcome.header["unwritten"].items():
        place = ", ".join(map(str, missing["first"]))
        said = f"{missing['count']:,} elements of {name} were never written, the first is {name}[{place}]"
        raise unwritten(run, f"elements of {name} were never written" if run.hidden else said)
    if pairs := outcome.header["stored_twice"]:
        judge_met(
            evidence, run, purpose, pairs if purpose == COMPILED else pairs[:: max(1, len(pairs) // MOST_MET)]
        )


def stored(run: Run) -> dict[str, int]:
    """Return the elements of each output."""
    return {p.spec.name: math.prod(p.shape) for p in run.placed if p.spec.role != "in"}


def all_show(run: Run, purpose: int) -> bool:
    """Return whether the machine has room for the stores of all programs of a case."""
    programs = math.prod(run.plan.steps[0].grid)
    return purpose not in FARS or sum(stored(run).values()) <= ALL_STORES and programs <= MOST_PROGRAMS


def how_all_show(run: Run, purpose: int) -> dict:
    """Return what is asked of the stores of all programs, and for how long."""
    how = {"waves_of": run.case.sm_count} if purpose == COMPILED else {}
    return how | ({"seconds": PAIR_S if purpose in PAIRS else FAR_S} if purpose in FARS else {})


def begin_compiled(evidence: KernelEvidence) -> None:
    """Run the compiled case ahead, which no hidden case is needed for."""
    if COMPILED not in evidence.known or isinstance(evidence.plan(COMPILED), dict):
        return
    if evidence.question.sampled is None:
        evidence.run_ahead([COMPILED])
    else:
        run_large_ahead(evidence, [COMPILED])


def begin(evidence: KernelEvidence, purposes: list[int]) -> None:
    """Run these large cases ahead, and all programs of one as soon as the metered case tells how long they take."""
    metered = evidence.ahead.get(METERED)  # it stands before all these in the queue
    if metered is not None and EVERY_PROGRAM in evidence.cases and CORNER in purposes:
        ahead.begin(evidence, EVERY_PROGRAM, partial(every_program, evidence, metered))
    run_large_ahead(evidence, [one for one in purposes if not isinstance(evidence.plan(one), dict)])


def run_large_ahead(evidence: KernelEvidence, purposes: list[int]) -> None:
    """Run programs of large cases ahead, and then show where all their programs store."""
    evidence.run_ahead(purposes, partial(how_to_run, evidence))
    alone = [one for one in purposes if not depends(evidence, one)]
    ahead.after_runs(evidence, "stores", alone, partial(stores_ahead, evidence))


def stores_ahead(evidence: KernelEvidence, purpose: int, run: Run) -> Outcome | None:
    return launch_stores(evidence, run, **how_all_show(run, purpose)) if all_show(run, purpose) else None


def judge_some_places(evidence: KernelEvidence, run: Run, whole: dict[str, int], grid: int) -> None:
    """Judge by drawn programs whether all together store every element: enough of them tell what one stores on average."""
    if sum(whole.values()) > MOST_OF_ONE * grid:
        return
    for many in (most // corner.PART**2 for most in SOME_STORES):
        count = min(MOST_DRAWN, max(1, many * grid // sum(whole.values())))
        drawn = evidence.rng(DRAWN + 3).integers(0, grid, count)
        chosen = np.unique([0, grid - 1, *drawn])
        outcome = stores(evidence, run, programs=[chosen.tolist()], seconds=FAR_S)
        if not ran_out_of(outcome, "bytes", "seconds"):
            break
    else:
        return
    refuse_error(replace(run, outcome=outcome))
    for name, all_of_it in whole.items():
        by = outcome.arrays[f"by:{name}"]
        if too_little(by[np.searchsorted(chosen, drawn)], by.max(), grid, all_of_it):
            raise unwritten(
                run, f"the programs of its grid are too few to write all of {name}, by what drawn ones store"
            )


def unwritten(run: Run, said: str) -> Failed:
    return Failed(f"{at(run)}: {said}", STORED, told=UNWRITTEN)


def too_little(wrote: np.ndarray, most: int, grid: int, all_of_it: int) -> bool:
    """Return whether `wrote`, by drawn program, is too little for a grid that fills everything. The drawn ones may happen to
    be those that store less than most do, and may miss the few that store `most`, or a step more, as persistent programs
    with a tile more or less than others do."""
    spread = SURE * wrote.std() / math.sqrt(len(wrote)) + SURE * (most - wrote.mean()) / len(wrote)
    less = wrote[wrote < most]
    step = most - less.max() if less.size else 0
    return bool(min(wrote.mean() + spread, most + step) * grid < all_of_it)


def judge_met(evidence: KernelEvidence, run: Run, purpose: int, pairs: list) -> None:
    """Run programs that store to the same element next to one another, and check that they store the same value."""
    programs = sorted({program for pair in pairs for program in pair})
    outcome = evidence.interpret(purpose, run.placed, programs=[programs], counting="values")
    met = replace(run, outcome=evidence.count(outcome))
    refuse_error(met)
    refuse_race(met)
    judge_written(evidence, met, whole=False)


def judge_written(evidence: KernelEvidence, run: Run, whole: bool) -> None:
    """Compare the programs' output in drawn rows."""
    question, case = evidence.question, run.case
    purpose = purpose_of(evidence, run)
    sampler = question.in_corners if purpose in IN_PART else question.sampled
    outputs = [placed for placed in run.placed if placed.spec.role != "in"]
    there = {placed.spec.name: (dense if whole else sparse)(run, placed) for placed in outputs}
    picked = sampler(question, run.inputs, case, evidence.rng(DRAWN + 1), there)
    for inputs, part, places in picked:
        want = question.reference(inputs, part)
        seen = {}
        for name, place in places.items():
            values, written = there[name].looked_up(place)
            seen[name] = np.where(written, values, want[name])
        sentence, _ = differs(question, inputs, part, seen, want)
        if sentence:
            look = together(question, case) if purpose in IN_PART else "the sizes of the compiled case"
            raise Failed(f"{at(run)}: {sentence}", look, told=UNTOLD)


def together(question: KernelQuestion, case: Case) -> str:
    """Say what an answer may take as the reason to go another way in this case."""
    plain = question.public[0]
    more = ["its dtypes"] * ((case.dtype, case.dtypes) != (plain.dtype, plain.dtypes))
    more += ["its strides"] * (case.layout != plain.layout)
    if not more:
        return "the sizes of this case"
    return f"the sizes of this case, {' and '.join(more)}, which count together"


def dense(run: Run, placed) -> Whole:
    name = placed.spec.name
    stores = placed.view(run.outcome.arrays[f"stores:{name}"])
    return Whole(run.output(name).astype(np.float64), stores > 0)


def sparse(run: Run, placed) -> Written:
    return Written(placed.shape, *run.written(placed.spec.name))
