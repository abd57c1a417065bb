"""Find one small change of a kernel that makes its cases right. Name its line and what to change there, but not the cure
itself.

Nothing is guessed. Each change is compiled and runs, and one is named only if it makes the failed case, every public case
and a case of each hidden kind right.
"""

import re
from itertools import islice

from grader.box.warm import JailTrouble
from grader.jail import host as jail
from grader.jail.protocol import Plan
from grader.judge import repair, weight_packing
from grader.judge.diagnose import LANES, RACE
from grader.judge.failed import Failed
from grader.judge.kernel_changes import changes, launches, of_plans
from grader.judge.kernel_evidence import KernelEvidence
from grader.judge.other_launch import OutOfTime, Trial, given, others
from grader.judge.repair import Change
from grader.questions.memory import as_placed

MOST_S = 10.0  # of processor time for all that is tried
MOST_CHANGES = 250
MOST_PACKINGS = 600  # changes of the function that packs weights
AT_ONCE = 12  # that are lowered together
NEARLY_ALL = 0.9
OFF = re.compile(r"([\d,]+) of ([\d,]+) elements are off")
IN_ROWS = (
    "with {0} stored row by row this case is right: does {1} read its arguments by index, and never in the order of "
    "memory?"
)
LINES = re.compile(r"\blines? (\d+)")


def sentence(evidence: KernelEvidence, purpose: int, failed: Failed) -> str:
    """Name the first change that makes all these cases right, or return an empty text."""
    planned = evidence.runs[purpose].plan is not None
    if (
        failed.facts.get("known")
        or not planned
        and (failed.facts.get("error") or {}).get("stage") != "launch"
    ):
        return ""
    if failed.told in (RACE, LANES) or "need an other=" in failed.look or "another plan for" in failed.came:
        return ""  # the report names the cause of a race, of lanes that a mask switches off, and of a plan by chance
    asks = evidence.question.prepare and planned
    return (
        (of_memory(evidence, purpose) if asks else "")
        or of_kernels(evidence, purpose, failed)
        or (of_packing(evidence, purpose) if asks else "")
    )


def of_kernels(evidence: KernelEvidence, purpose: int, failed: Failed) -> str:
    blamed = {int(line) for line in LINES.findall(f"{failed.came} {failed.look}")}
    # the others are drawn once a change makes the failed case right
    trial, first, rest = Trial(evidence, purpose, most_s=MOST_S), given(evidence, purpose), []
    try:
        # without a plan the launch function alone is to blame
        cures = changes if evidence.runs[purpose].plan is not None else of_plans
        found = islice(cures(evidence.source, blamed, mostly_off(failed.came)), MOST_CHANGES)
        while some := list(islice(found, AT_ONCE)):
            for number in trial.right_texts([change.source for change in some], first):
                change, rest = some[number], rest or list(others(evidence, purpose, most=None))
                if trial.of_source(change.source, rest):
                    return said(change, 1 + len(rest), of_plan(evidence.source, change.line))
    except (JailTrouble, OutOfTime, SyntaxError, RecursionError):
        pass
    return ""


def of_memory(evidence: KernelEvidence, purpose: int) -> str:
    """Say that the case is right if all weights are stored row by row."""
    weights = evidence.weights.get(purpose, {})
    names = " and ".join(weight_packing.laid_out(weights))
    try:
        trial, rows = Trial(evidence, purpose, most_s=MOST_S), weight_packing.in_rows(weights)
        if names and right_packed(trial, evidence.source, purpose, rows):
            return IN_ROWS.format(names, evidence.question.prepare.entry)
    except (JailTrouble, OutOfTime):
        pass
    return ""


def of_packing(evidence: KernelEvidence, purpose: int) -> str:
    """Name a change of the function that prepares weights, by packing them anew for the same kernel."""
    asks, trial = evidence.question.prepare, Trial(evidence, purpose, most_s=MOST_S)
    cases = [purpose, *(one for one in evidence.public if one != purpose)]
    try:
        for change in islice(repair.changes(evidence.source, asks.entry, alone=True), MOST_PACKINGS):
            if all(right_packed(trial, change.source, one) for one in cases):
                return said(change, len(cases), False)
    except (JailTrouble, OutOfTime, SyntaxError, RecursionError):
        pass
    return ""


def right_packed(trial: Trial, source: str, purpose: int, weights: dict | None = None) -> bool:
    """Return whether a case is right with the arrays that another text of the cell packs, or the same text from these
    weights."""
    evidence, plan = trial.evidence, trial.evidence.plan(purpose)
    weights = weights or evidence.weights.get(purpose)
    if not isinstance(plan, Plan) or weights is None:
        return False
    outcome, (made,) = jail.prepare(
        source, evidence.question.prepare.entry, [plan], [weights], evidence.level
    )
    trial.spend(outcome.cpu_s)
    if made.error:
        return False
    case, inputs, placed = given(evidence, purpose)
    kept = [one for one in placed if one.spec.name not in made.arrays]
    packed = [as_placed(name, array) for name, array in made.arrays.items()]
    return trial.right_on(case, plan, evidence.texts(purpose), inputs, [*kept, *packed])


def of_plan(source: str, line: int) -> bool:
    return any(one.lineno <= line <= one.end_lineno for one in launches(source))


def said(change: Change, cases: int, planned: bool) -> str:
    """Say what was changed. Another plan may also keep away from a line of the kernel that is wrong for this one."""
    right = f"line {change.line} of the cell: {change.words} makes all {cases} cases right that were tried"
    return (
        right
        + planned
        * "; or else the kernel is wrong where it depends on this, so look there first if the plan is meant"
    )


def mostly_off(came: str) -> bool:
    counts = OFF.search(came)
    wrong, of = (int(one.replace(",", "")) for one in counts.groups()) if counts else (0, 1)
    return wrong > NEARLY_ALL * of
