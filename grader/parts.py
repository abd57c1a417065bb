"""The judges: each looks at one kind of evidence and says what was asked, what came and where to look."""

import math

import numpy as np

from grader import front_end, gpu, numpy_parts, on_gpu, speed
from grader.compare import difference
from grader.evidence import Evidence, Run
from grader.picture import coarse
from grader.questions import Part
from grader.record import PartResult
from grader.sentences import describe, fail, from_error, tell

PUBLIC, HIDDEN, TRAFFIC, REPEAT = 100, 200, 300, 400


def judge(evidence: Evidence, part: Part) -> PartResult:
    result = PartResult(
        part.name, part.points, part.points, asked=evidence.question.asks, look=evidence.question.where
    )
    return JUDGES[part.judged_by(evidence.mode)](evidence, part, result)


def values(evidence: Evidence, part: Part, result: PartResult) -> PartResult:
    """Public cases, then hidden ones with fresh secret seeds; the first that fails is reported."""
    result.evidence = "values in Triton's interpreter"
    public = [(PUBLIC + i, case) for i, case in enumerate(evidence.question.public)]
    hidden = [(HIDDEN + i, case) for i, case in enumerate(evidence.hidden_cases())]
    runs = []
    for group, secret in ((public, False), (hidden, True)):
        kind = "hidden" if secret else "public"
        evidence.run_ahead(group, secret)
        if secret and evidence.question.traffic_case:
            evidence.run_ahead([(TRAFFIC, evidence.question.traffic_case)], False)
        for number, (purpose, case) in enumerate(group):
            evidence.say(f"running {len(group)} {kind} cases in the interpreter … {number}/{len(group)}")
            runs.append(evidence.run(case, purpose, secret))
            if _one_case(evidence, runs[-1], result) is not None:
                return tell(result, case.kind) if secret else result
    evidence.say(f"reading {len(runs)} plans with Triton's front end")
    if front_end.not_triton(evidence, runs, result) is not None:
        return result
    if evidence.gpu is not None:
        result.evidence += f" and on {gpu.name()}"
        if on_gpu.differs(evidence, runs, result) is not None:
            return result
    result.came = f"{len(public)} public and {len(hidden)} hidden cases agree with the reference"
    return result


def _one_case(evidence: Evidence, run: Run, result: PartResult) -> PartResult | None:
    error = run.outcome.error
    if error:
        return from_error(error, result, describe(run))
    for sort, trouble in TROUBLES.items():
        sentence = trouble(run)
        if sentence:
            return fail(result, f"{describe(run)}: {sentence[0]}", sentence[1], sort=sort)
    if evidence.question.agree:
        got = {name: run.output(name) for name in run.want}
        sentence = evidence.question.agree(run.inputs, run.case, got, run.want)
        if not sentence:
            return None
        name = next(iter(run.want))
        known = recognise(evidence.question, run, name, 0.5)
        return fail(
            result,
            f"{describe(run)}: {sentence}",
            known or "what is maximised in that row, and over which tokens",
            known=bool(known),
        )
    allowed = evidence.question.tolerance(run.inputs, run.case, run.want)
    for name, want in run.want.items():
        worst = difference(name, run.output(name).astype(np.float64), want, allowed[name])
        if worst:
            known = recognise(evidence.question, run, name, allowed[name])
            look = known or "how that element is computed: which program writes it, and what it reads"
            return fail(
                result, f"{describe(run)}: {worst.sentence()}", look, worst=vars(worst), known=bool(known)
            )
    return None


def _input_written(run: Run):
    inputs = {p.spec.name for p in run.placed if p.spec.role == "in"}
    for launch in run.launches:
        for name in inputs & set(launch["tensors"]):
            if {"store", "atomic"} & set(launch["tensors"][name]):
                return (
                    f"kernel {launch['kernel']} wrote into its input {name}",
                    "which pointer the store uses",
                )


def _race(run: Run):
    if run.outcome.header["races"]:
        race = run.outcome.header["races"][0]
        return (
            f"two programs use element {race['element']} of {race['tensor']} ({race['how']}), so the result depends on which is first",
            "how a program's indices come from its program id: no two may own the same element",
        )


def _red_zone(run: Run):
    if run.outcome.header["red_zones_broken"]:
        return (
            f"bytes beside {run.outcome.header['red_zones_broken'][0]} were changed",
            "the mask of the store",
        )


def _unwritten(run: Run):
    for placed in run.placed:
        if placed.spec.role != "out":
            continue
        stores = placed.view(run.outcome.arrays[f"stores:{placed.spec.name}"])
        missing = np.argwhere(stores == 0)
        if len(missing):
            place = ", ".join(map(str, missing[0]))
            return (
                f"{len(missing)} of {stores.size} elements of {placed.spec.name} were never written, the first is {placed.spec.name}[{place}]",
                "the grid (does it cover the last, ragged tile?) and the mask of the store",
            )


def _gap_written(run: Run):
    for placed in run.placed:
        if placed.spec.role == "in":
            continue
        stores = run.outcome.arrays[f"stores:{placed.spec.name}"]
        if (stores[placed.gaps()] != 0).any():
            return (
                f"memory between the rows of {placed.spec.name} was written",
                "the strides of the store and its column mask",
            )


TROUBLES = {
    "a written input": _input_written, "two programs that race": _race, "a write beside a tensor": _red_zone,
    "elements that were never written": _unwritten, "a write between the rows of a tensor": _gap_written,
}  # fmt: skip


def recognise(question, run: Run, name: str, allowed) -> str:
    """The sentence of a common mistake, where what came is what that mistake would give."""
    got = run.output(name).astype(np.float64)
    for mistake in question.mistakes:
        try:
            if mistake.shows is not None:
                hit = mistake.shows(run.inputs, run.case, got, run.want[name])
            else:
                would = mistake.wrong(run.inputs, run.case)[name]
                near = np.maximum(allowed, np.abs(would) * 2e-2)
                shows_here = difference(name, run.want[name], would, near) is not None
                hit = shows_here and difference(name, got, would, near) is None
        except (ValueError, KeyError, FloatingPointError, IndexError):
            continue
        if hit:
            return mistake.sentence
    return ""


def traffic(evidence: Evidence, part: Part, result: PartResult) -> PartResult:
    """Bytes counted by the meter against the topic's cost model."""
    question = evidence.question
    result.evidence = "traffic counted in Triton's interpreter"
    evidence.say("counting the bytes of the metered case")
    run = evidence.run(question.traffic_case, TRAFFIC, False)
    if _one_case(evidence, run, result) is not None:  # the bytes of a wrong result are worth nothing
        return result
    result.facts = {"case": dict(run.case.sizes)}
    if not evidence.pictured:  # one table and picture a report
        evidence.pictured = True
        result.facts |= {"launches": run.launches, "touched": touched(run)}
    if len(run.launches) > question.most_launches:
        return fail(
            result,
            f"{len(run.launches)} launches, allowed {question.most_launches}",
            "fuse the steps of launch(p)",
        )
    budgets = question.budgets[part.name](run.case, run.outcome.header["plan"])
    rows = [{**vars(budget), "moved": _moved(run, budget)} for budget in budgets]
    result.facts["budgets"] = rows
    for row in rows:
        unit = "programs" if row["count"] == "programs" else "bytes"
        if row["moved"] > row["most"]:
            came = f"{row['what']}: {row['moved']:,} {unit}, more than the {row['most']:,.0f} of the model"
            return fail(result, came, row["look"])
        if row["moved"] < row["least"]:
            came = f"{row['what']}: {row['moved']:,} {unit}, less than the {row['least']:,.0f} of the model"
            return fail(result, came, row["look"])
    result.came = "; ".join(_kept(row) for row in rows)
    return result


def _kept(row: dict) -> str:
    if row["count"] == "programs":
        return f"{row['what']}: {row['moved']:,}, at least {row['least']:,.0f}"
    return f"{row['what']}: {row['moved']:,} bytes within {row['most']:,.0f}"


def _moved(run: Run, budget) -> int:
    """What was counted of one budget: bytes of an operand, or the programs of the widest launch that uses it."""
    if budget.count == "programs":
        users = [
            launch for launch in run.launches if not budget.tensor or launch["tensors"].get(budget.tensor)
        ]
        return max((math.prod(launch["grid"]) for launch in users), default=0)
    return sum(
        launch["tensors"].get(name, {}).get(budget.access, {}).get(budget.count, 0)
        for launch in run.launches
        for name in (launch["tensors"] if budget.tensor == "all" else [budget.tensor])
    )


def touched(run: Run) -> dict:
    """How often each element of each tensor was touched, coarse enough to draw."""
    found = {}
    for placed in run.placed:
        for kind in ("loads", "stores"):
            counts = placed.view(run.outcome.arrays[f"{kind}:{placed.spec.name}"])
            if counts.any():
                found[f"{kind}:{placed.spec.name}"] = coarse(counts)
    return found


def compiled(evidence: Evidence, part: Part, result: PartResult) -> PartResult:
    """What the compiler makes of it for real GPUs: spills, shared bytes, the unit the lesson is about."""
    question = evidence.question
    names = ", ".join(f"sm_{t}" for t in question.targets)
    result.evidence = f"compiled for {names}"
    evidence.say(f"compiling for {names}")
    outcome = evidence.compiled()
    if outcome.error:
        error = outcome.error
        target = f" for sm_{error['target']}" if error.get("target") else ""
        return from_error(
            {**error, "message": f"does not compile{target}: {error['message']}"}, result, "compile"
        )
    if wrong := front_end.foreign(outcome.header["ir"], result):
        return wrong
    if wrong := front_end.other_plan(evidence, outcome.header["plan"], result):
        return wrong
    reports = outcome.header["compiled"]
    result.facts = {"compiled": reports}
    if question.traffic_case:
        counted = evidence.run(question.traffic_case, TRAFFIC, False)
        too = (
            None
            if counted.outcome.error
            else front_end.metered_plan(evidence, counted, outcome.header["plan"])
        )
        if too is not None and too.error:
            message = f"the kernel whose bytes were counted does not compile: {too.error['message']}"
            return from_error({**too.error, "message": message}, result, describe(counted))
        reports = reports + (too.header["compiled"] if too is not None else [])
    for report in reports:
        sentence = _compiled_badly(question, report)
        if sentence:
            return fail(result, f"{report['kernel']} for sm_{report['target']}: {sentence[0]}", sentence[1])
    missing = _missing_instruction(question, reports)
    if missing:
        return fail(
            result, missing, "do the products go through tl.dot, in a dtype and tile that tensor cores take?"
        )
    first = reports[0]
    result.came = f"compiles for {names}; sm_{first['target']}: {first['registers']} registers, {first['spill_stores']} bytes spilled, {first['shared_bytes']:,} bytes of shared memory"
    return result


SHARED_LIMIT = {80: 166912, 86: 101376, 89: 101376, 90: 232448, 100: 232448, 120: 101376}


def _compiled_badly(question, report: dict):
    limit = SHARED_LIMIT.get(report["target"], 101376)
    if report["shared_bytes"] > limit:
        return (
            f"needs {report['shared_bytes']:,} bytes of shared memory, a block may have {limit:,}",
            "smaller tiles or fewer num_stages",
        )
    spilled = report["spill_stores"] or 0
    if spilled > question.most_spills:
        return (
            f"spills {spilled:,} bytes of registers, allowed {question.most_spills:,}",
            "a smaller tile, or more num_warps to share it",
        )


def _missing_instruction(question, reports: list) -> str:
    for target, instruction in question.instruction.items():
        mine = [r for r in reports if r["target"] == target]
        if mine and not any(r["instructions"].get(instruction) for r in mine):
            return f"the tensor-core instruction {instruction} is nowhere in the code for sm_{target}"
    return ""


JUDGES = {
    "values": values,
    "traffic": traffic,
    "compiled": compiled,
    "speed": speed.judge,
    "calls": numpy_parts.calls,
}
