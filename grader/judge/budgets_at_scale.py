"""Check the budgets again at the compiled size and in a corner, and how programs are grouped at a size between."""

import math
from dataclasses import replace
from functools import partial

import numpy as np

from grader.box.warm import Outcome
from grader.judge import ahead, by_line, only_here, sampled, traffic
from grader.judge.accounts import account
from grader.judge.diagnose import describe, from_error, in_full
from grader.judge.every_case import (
    FREE_OF,
    FREE_OF_ALL,
    ROOM,
    SIDE_BY_SIDE,
    computing,
    judge_busiest,
    of_bytes,
    share_when_metered,
    sharing,
)
from grader.judge.failed import Failed
from grader.judge.kernel_evidence import (
    BETWEEN,
    COMPILED,
    DEEP,
    FAR,
    IN_PART,
    LESS_FAR,
    LIMITED_IN_PART,
    METERED,
    MIRRORED,
    STRETCHED,
    TURNED,
    KernelEvidence,
    Run,
)
from grader.judge.sampled import AT_COMPILED, at
from grader.questions import Budget, Case, KernelQuestion, Part
from grader.questions.account import CUT, ONCE, SMALL, in_blocks, in_sectors, size

SLACK = 1.5  # drawn programs are not all alike, because rows of causal attention see more keys or fewer
# counts split over all programs, with programs that share the work as well if all ran
SHARED_OUT = ("dedup", "sectors", "dot", "wide dot", "operations", "integers", "work", "time")
WHOLE = (*SHARED_OUT, "requested", "unique", "programs")
ESTIMATED = ("dedup", "dot", "wide dot", "operations", "work")  # of programs that need one another
OFF = 1 + 2.0**-30  # a share is a quotient of floats, and a limit may be spent to its last byte
BESIDE_DOTS = ("operations", "integers", "work", "time")
COUNTED = ("dedup", "sectors")  # of drawn programs in a second run, where lanes alone are too many
AT_LEAST = ("dot", "programs")
FEW_DRAWN = 3  # programs, all of which may be at an end of the grid
WAVES_DRAWN = 6


def judge(evidence: KernelEvidence, part: Part) -> None:
    """Check the part's budgets in both large cases. If a case ran whole, check all budgets, else the share for the output
    that the drawn programs wrote."""
    for purpose in LIMITED_IN_PART:
        if few := too_few(evidence, purpose).get(part.name):
            said = f"{few.what}, a hidden case ({evidence.cases[purpose].kind})"
            raise Failed(f"{said}: less than half of those that could share the work", few.look, told=said)
        ran = evidence.runs.get(purpose)
        if purpose in evidence.cases and sampled.depends(evidence, purpose) and not (ran and ran.whole):
            judge_estimated(evidence, part, purpose)
    for purpose in (COMPILED, *LIMITED_IN_PART):
        run = evidence.runs.get(purpose)
        if run is not None and not run.outcome.error and (purpose == COMPILED or not run.whole):
            judge_run(evidence, part, purpose, run)
            if purpose in (FAR, LESS_FAR):
                judge_drawn_waves(evidence, part, purpose, run)


def judge_run(evidence: KernelEvidence, part: Part, purpose: int, run: Run) -> None:
    """Check the part's budgets in one large case."""
    question = evidence.question
    whole = run.whole
    if purpose in IN_PART and (run := of_whole_tiles(evidence, run, purpose)) is None:
        return
    on_average = 1.0 if whole else written(run)
    slack_on_average = 1.0 if whole else SLACK if purpose == COMPILED else SLACK * ROOM
    exact = run if whole or purpose in IN_PART else None
    budgets = [one for one in limits(evidence, part, purpose, run) if one.count != "programs"]
    budgets += (shared := sharers(evidence, part, purpose, run.case))
    if whole:
        judge_busiest(run, shared)
    if (
        purpose == COMPILED
        and question.sampled is not None
        and any(budget.count == "wave" for budget in budgets)
    ):
        places = replace(run, outcome=evidence.places.get(COMPILED, run.outcome))
        judge_waves(places, budgets, question.most_launches, AT_COMPILED)
        for size in of_waves(evidence):
            judge_between(evidence, part, size)
    for budget in budgets:
        if budget.count == "programs" and not whole:
            judge_programs(run, shares_of(evidence, purpose, run), budget)
        if budget.count not in (WHOLE if whole else SHARED_OUT):
            continue
        share, slack = on_average, slack_on_average
        if budget.share and not whole:
            share = OFF * budget.share(indices(run))
            slack = ROOM if purpose in IN_PART and budget.count in BESIDE_DOTS else 1.0
        most, least = budget.most * share * slack, budget.least * share / slack
        own = next((t for t in question.tensors if t.name == budget.tensor), None)
        if (
            budget.count == "sectors" and purpose in IN_PART and own
        ):  # room is for bytes, each worth a sector here
            most = min(most, max(budget.most * share, of_bytes(budget, run, own)))
        # of a time with strides, which take many sectors, the computing alone: bytes have limits of their own
        if budget.count == "time" and run.case.layout:
            found = computing(run)
        else:
            found = traffic.spent(run, budget) if whole else lanes(run, budget)
        if found > most and budget.count in COUNTED:  # lanes that ask for the same byte count once
            exact = exact or counted(evidence, run)
            found = traffic.spent(exact, budget)
        # drawn programs of a corner may be those with least to do
        at_least = budget.count in AT_LEAST and (whole or purpose == COMPILED or budget.share is not None)
        if found > most or at_least and found < least:
            raise Failed(
                sentence(run, budget, found, share),
                look(evidence, part, exact or run, budget, found, share),
                told=f"{budget.what}, {told(run)}",
            )


def look(evidence: KernelEvidence, part: Part, run: Run, budget: Budget, found: float, share: float) -> str:
    """Return where to look: a limit that the metered case keeps is broken by what only this one does."""
    most = max(budget.most * share, 1e-12)
    too_many = budget.count == "sectors" and traffic.spent(run, replace(budget, count="dedup")) > most
    above = found > budget.most * share
    hint = by_line.spare(budget) if too_many else budget.look_above if above else budget.look
    drawn = None if run.whole else programs_of(run)
    usual = by_line.look(evidence, run, budget, hint, drawn, share)
    if not run.hidden:
        return usual
    compared, multiple = only_here.against_metered(
        share_when_metered(evidence, part, run, budget), found / most
    )
    return "; ".join(filter(None, (compared, usual if usual != hint else multiple or usual)))


def judge_estimated(evidence: KernelEvidence, part: Part, purpose: int) -> None:
    """Check what a corner's programs would spend, where they need one another: by some of each launch."""
    if purpose not in evidence.corner_runs:
        evidence.corner_runs[purpose] = sampled.of_each_launch(evidence, purpose)
    run = evidence.corner_runs[purpose]
    if run is None:
        return
    for budget in limits(evidence, part, purpose, run):
        if budget.count not in ESTIMATED:
            continue
        part_of_it = share_of_drawn(run, budget) or SLACK * ROOM
        found, most = (
            traffic.spent(run, budget),
            budget.most * part_of_it + FREE_OF.get(budget.count, FREE_OF_ALL),
        )
        if found > most:
            said = f"{budget.what}, {at(run)}: about {traffic.times(found / max(budget.most, 1e-12), 1)} the limit there"
            raise Failed(said, budget.look_above, told=f"{budget.what}, {told(run)}")


def share_of_drawn(run: Run, budget: Budget) -> float:
    """Return the share of a limit that is due to drawn programs, times what they stand for. Return 0 if the budget can't
    tell, or if launches that don't store the outputs spend of it."""
    outputs = [p.spec.name for p in run.placed if p.spec.role != "in"]
    if budget.share is None or not all(f"by:{name}" in run.outcome.arrays for name in outputs):
        return 0.0
    drawn = len(programs_of(run))
    spending = [
        step
        for step, launch in zip(run.plan.steps, run.launches, strict=True)
        if traffic.spent(of_launch(run, launch), budget)
    ]
    storing = [
        step
        for step, launch in zip(run.plan.steps, run.launches, strict=True)
        if any("store" in launch["tensors"].get(name, {}) for name in outputs)
    ]
    if len(storing) != 1 or spending != storing or not drawn:
        return 0.0
    return budget.share(indices(run)) * math.prod(storing[0].grid) / drawn


def of_launch(run: Run, launch: dict) -> Run:
    return replace(run, outcome=replace(run.outcome, header=run.outcome.header | {"launches": [launch]}))


def limits(evidence: KernelEvidence, part: Part, purpose: int, run: Run) -> list[Budget]:
    """Return the limits of a large case. Lanes beyond the last element compute too, and in a corner they may be many."""
    question = evidence.question
    found = account(question, part.name, run.case)
    if purpose == COMPILED:
        return found
    of_blocks = {
        (one.what, one.count, one.tensor): one.most
        for one in account(question, part.name, in_blocks(question, two_blocks(question, run.case)))
    }
    # packed arrays, rows that don't begin with a sector, and small inputs have no limit made for such sizes, unless the
    # question states one that isn't small, nor have sectors of what metered programs may load again and again
    metered = account(question, part.name, evidence.known.get(METERED, run.case))
    limited = {one.tensor for one in metered if one.count == "sectors"}
    whole = {t.name for t in question.tensors if t.name in limited and in_sectors(t, run.case) == CUT}
    total = sum(size(t, run.case) for t in question.tensors)
    small = {t.name for t in question.tensors if t.role == "in" and size(t, run.case) < SMALL * total}
    stated = {one.what for one in question.budgets.get(part.name, lambda case: [])(run.case)}
    named = {t.name: t for t in question.tensors}
    bytes_of = []
    for one in found:
        if (
            one.count == "sectors" and one.tensor in named.keys() - small
        ):  # its bytes are limited by its sectors
            own = size(named[one.tensor], run.case)
            most = one.most if one.most > ONCE * own else own
            bytes_of.append(replace(one, count="dedup", most=most, look=by_line.spare(one)))
    return bytes_of + [
        replace(one, most=max(one.most, of_blocks.get((one.what, one.count, one.tensor), 0)))
        if one.count in FREE_OF and not one.exact
        else one
        for one in found
        if one.tensor != "packed"
        and (one.count != "sectors" or one.tensor in whole)
        and (
            one.count != "dedup"
            or one.tensor not in small
            or one.what in stated
            and one.most >= SMALL * total
        )
    ]


def two_blocks(question: KernelQuestion, case: Case) -> Case:
    """Return a case with two blocks along each axis that has less than one, since a tile may be twice as large."""
    few = {axis: 2 * lanes for axis, lanes in question.blocks.items() if case.sizes[axis] <= lanes}
    return replace(case, sizes=case.sizes | few)


def sharers(evidence: KernelEvidence, part: Part, purpose: int, case: Case) -> list[Budget]:
    """Return the limits on programs. A corner asks for no more than every other hidden case does."""
    found = sharing(evidence, part, case)
    if purpose == COMPILED:
        return found
    return [replace(one, least=min(one.least, case.sm_count) / SIDE_BY_SIDE) for one in found]


def too_few(evidence: KernelEvidence, purpose: int) -> dict[str, Budget]:
    """Return by part the limit that a corner's grid breaks by its number of programs alone. Running them would take
    minutes. It is found once."""
    if purpose not in evidence.few:
        evidence.few[purpose] = {}
        plan = evidence.plan(purpose) if purpose in evidence.cases else {}
        if not isinstance(plan, dict) and not sampled.depends(evidence, purpose):
            most = max(math.prod(step.grid) for step in plan.steps)
            for part in evidence.question.parts:
                limits = (
                    sharers(evidence, part, purpose, evidence.cases[purpose])
                    if part.name in evidence.question.budgets
                    else []
                )
                if few := next((one for one in limits if most < one.least), None):
                    evidence.few[purpose][part.name] = few
    return evidence.few[purpose]


def told(run: Run) -> str:
    """Name a large case without its sizes."""
    return describe(run) if run.hidden else AT_COMPILED


def shares_of(evidence: KernelEvidence, purpose: int, run: Run) -> dict:
    """Return for each output the number of stored elements, and the busiest program's share of the stores. In the largest
    corners only the drawn programs count."""
    if purpose in evidence.places:
        return evidence.places[purpose].header["shares"]
    by = {p.spec.name: run.outcome.arrays.get(f"by:{p.spec.name}") for p in run.placed}
    whole = {p.spec.name: math.prod(p.shape) for p in run.placed}
    return {
        name: (whole[name], np.bincount(who).max())
        for name, who in by.items()
        if who is not None and len(who)
    }


def judge_programs(run: Run, shares: dict, budget: Budget) -> None:
    """Programs side by side, by the part of an output that the busiest of all stores."""
    wrote, busiest = shares.get(budget.tensor) or max(shares.values(), default=(0, 0))
    found = math.ceil(wrote / busiest) if busiest else math.inf
    # programs that read as much as one another may store unlike numbers of rows
    least = budget.least if budget.tensor in shares else budget.least / SIDE_BY_SIDE
    if found < least:
        few = f"{at(run)}: {budget.what}: as good as {found:,}, less than the {least:,.0f} that it takes"
        if run.hidden:
            few = f"{budget.what}, {at(run)}: less than half of those that could share the work"
        raise Failed(
            few,
            budget.look,
            told=f"{budget.what}, {told(run)}",
        )


def judge_between(evidence: KernelEvidence, part: Part, purpose: int) -> None:
    """Check the waves of a secret size, between the metered and the compiled one, or of such a size with M and N swapped."""
    case, plan = evidence.cases[purpose], evidence.plan(purpose)
    if isinstance(plan, dict):
        raise from_error(plan, f"a hidden case ({case.kind})")
    run = ahead.result(evidence, ("waves", purpose), partial(waves_between, evidence, purpose))
    sampled.judged_stores(evidence, run, run.outcome, waves_of=case.sm_count)
    budgets = evidence.question.budgets[part.name](case)
    judge_waves(run, budgets, evidence.question.most_launches, f"at {case.kind}")


def waves_between(evidence: KernelEvidence, purpose: int) -> Run:
    """Return where all programs of such a size store, without what its tensors hold, which may be large."""
    case = evidence.cases[purpose]
    inputs, placed = evidence.draw(purpose)
    run = Run(case, True, evidence.plan(purpose), placed, inputs, {}, Outcome())
    outcome = sampled.launch_stores(evidence, run, waves_of=case.sm_count)
    hollow = [replace(one, storage=one.storage[:0].copy()) for one in placed]
    return replace(run, placed=hollow, inputs={}, outcome=outcome)


def judge_waves(run: Run, budgets: list[Budget], most_launches: int, where: str) -> None:
    """Return the reads that the waves of a case need, from its programs' stores."""
    at = f"{where} ({in_full(run.case)})"
    if len(run.plan.steps) > most_launches:
        came = f"{at}: {len(run.plan.steps)} launches, allowed {most_launches}"
        raise Failed(came, "fuse the steps of launch(p)", told="too many launches")
    found = needed(run, run.outcome.header["written_by_waves"])
    for budget in budgets:
        if budget.count == "wave" and found > budget.most:
            raise Failed(
                f"{at}: {budget.what}: at least {traffic.amount(found, budget)}, "
                f"more than the limit of {traffic.amount(budget.most, budget)}",
                budget.look,
                told=f"{budget.what} {where}",
            )


def judge_drawn_waves(evidence: KernelEvidence, part: Part, purpose: int, run: Run) -> None:
    """Check what drawn waves of a corner need on average, from their programs' stores. That may be twice as much as in a
    patch, since a wave may go from one to the next."""
    budgets = [one for one in account(evidence.question, part.name, run.case) if one.count == "wave"]
    if not budgets or len(run.plan.steps) > 1:
        return
    grid, wide = math.prod(run.plan.steps[0].grid), run.case.sm_count
    waves, reads = math.ceil(grid / wide), []
    for wave in evidence.rng(sampled.WAVES).integers(0, max(1, waves - 1), WAVES_DRAWN).tolist():
        programs = [*range(wave * wide, min(grid, (wave + 1) * wide))]
        found = sampled.stores(evidence, run, programs=[programs], seconds=sampled.PART_S, waves_of=wide)
        if found.error:
            return
        reads.append(needed(run, found.header["written_by_waves"]))
    for budget in budgets:
        if (found := waves * np.mean(reads)) > SIDE_BY_SIDE * budget.most:
            said = f"{budget.what}, {at(run)}: about {traffic.times(found / budget.most, 1)} the limit there"
            raise Failed(said, budget.look, told=f"{budget.what}, {told(run)}")


def needed(run: Run, by_waves: dict[str, list[int]]) -> int:
    """Return the least that waves must read of inputs that share one axis with an output: all the indices that they
    write along this axis, and everything along the other axes, which the result is summed over."""
    inputs = [placed for placed in run.placed if placed.spec.role == "in"]
    total = 0
    for name, indices in by_waves.items():
        axes = next(placed.spec.axes for placed in run.placed if placed.spec.name == name)
        for one in inputs:
            shared = [axis for axis in one.spec.axes if axis in axes]
            if len(shared) == 1:
                rest = math.prod(
                    n for n, axis in zip(one.shape, one.spec.axes, strict=True) if axis not in shared
                )
                total += indices[axes.index(shared[0])] * rest * one.storage.itemsize
    return total


def written(run: Run) -> float:
    """Return which share of its outputs a run wrote."""
    outputs = [placed for placed in run.placed if placed.spec.role != "in"]
    all_of_it = sum(math.prod(placed.shape) for placed in outputs)
    there = [run.outcome.arrays.get(f"at:{placed.spec.name}") for placed in outputs]
    return 1.0 if there[0] is None else sum(map(len, there)) / all_of_it


def programs_of(run: Run) -> list[int]:
    """Return the drawn programs that stored something."""
    by = [run.outcome.arrays[f"by:{placed.spec.name}"] for placed in run.placed if placed.spec.role != "in"]
    return np.unique(np.concatenate(by)).tolist()


def indices(run: Run) -> dict[str, np.ndarray]:
    """Return the indices that drawn programs wrote, a row each, by output."""
    return {
        placed.spec.name: placed.indices(run.outcome.arrays[f"at:{placed.spec.name}"])
        for placed in run.placed
        if placed.spec.role != "in"
    }


def begin(evidence: KernelEvidence) -> None:
    """Run ahead whole tiles of the corners, as far as their drawn programs ran, and the sizes whose waves are limited."""
    for purpose in LIMITED_IN_PART:
        run = evidence.runs.get(purpose)
        if run is not None and not run.outcome.error and not run.whole:
            ahead.begin(evidence, ("whole tiles", purpose), partial(whole_tiles, evidence, run, purpose))
    for purpose in of_waves(evidence) if evidence.question.sampled is not None else ():
        if not isinstance(evidence.plan(purpose), dict):
            ahead.begin(evidence, ("waves", purpose), partial(waves_between, evidence, purpose))


def of_waves(evidence: KernelEvidence) -> list[int]:
    """Return the secret sizes at which only waves are looked at."""
    return [one for one in (BETWEEN, MIRRORED, STRETCHED, DEEP, *TURNED) if one in evidence.known]


def of_whole_tiles(evidence: KernelEvidence, run: Run, purpose: int) -> Run | None:
    """Return what programs of whole tiles spend, or None if none was drawn or they didn't end. They run once."""
    if purpose not in evidence.corner_runs:
        work = partial(whole_tiles, evidence, run, purpose)
        evidence.corner_runs[purpose] = ahead.result(evidence, ("whole tiles", purpose), work)
    found = evidence.corner_runs[purpose]
    return None if found is None or found.outcome.error else found


def whole_tiles(evidence: KernelEvidence, run: Run, purpose: int) -> Run | None:
    """Run those of a corner's drawn programs that store most once more, with all counts. The others, at the ends of the
    grid, may compute whole tiles and store little."""
    programs = sampled.chosen(evidence, purpose)
    by = [run.outcome.arrays[f"by:{p.spec.name}"] for p in run.placed if p.spec.role != "in"]
    wrote = np.array([sum(np.count_nonzero(who == program) for who in by) for program in programs])
    storing = [program for program, count in zip(programs, wrote, strict=True) if count]
    most = [program for program, count in zip(programs, wrote, strict=True) if count == wrote.max()]
    if not storing or len(storing) <= FEW_DRAWN and all(at_an_end(evidence, run, one) for one in most):
        return None
    if sampled.runs_once(purpose, programs):
        return run
    outcome = evidence.interpret(purpose, run.placed, programs=[most], counting="full")
    return replace(run, outcome=outcome)


def at_an_end(evidence: KernelEvidence, run: Run, program: int) -> bool:
    """Return whether this program of a corner stores less than the first one or its neighbour, since its tile is cut."""
    others = sorted({0, max(0, program - 1), program})
    found = sampled.stores(evidence, run, programs=[others], seconds=sampled.FAR_S).arrays
    by = sum(
        found[f"by:{p.spec.name}"] for p in run.placed if p.spec.role != "in" and f"by:{p.spec.name}" in found
    )
    return bool(np.size(by) > 1 and by[others.index(program)] < max(by))


def lanes(run: Run, budget: Budget) -> float:
    """Return the highest cost for a budget from a run without bytes. Lanes ask for each byte at least once, but say
    nothing about sectors."""
    if budget.count == "sectors":
        return math.inf
    return traffic.spent(run, replace(budget, count="requested") if budget.count == "dedup" else budget)


def counted(evidence: KernelEvidence, run: Run) -> Run:
    """The same programs once more, each byte of an access counted once."""
    programs = [sampled.chosen(evidence, COMPILED)]
    outcome = evidence.interpret(COMPILED, run.placed, programs=programs, counting="full")
    return replace(run, outcome=run.outcome if outcome.error else outcome)


def sentence(run: Run, budget: Budget, found: float, share: float) -> str:
    bound = budget.most if found > budget.most * share else budget.least
    than = "more" if bound == budget.most else "less"
    if run.hidden:
        return (
            f"{budget.what}, {at(run)}: {traffic.times(found / max(bound * share, 1e-12), 1)} the limit there"
        )
    return (
        f"{at(run)}: {budget.what}: {traffic.amount(found, budget)} for the "
        f"{share:.1%} of the output that drawn programs wrote, {than} than {traffic.amount(bound * share, budget)}, their share of the limit"
    )
