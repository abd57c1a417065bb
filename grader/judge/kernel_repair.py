"""Find one small change of a kernel that makes its cases right. Name its line and what to change there, but not the cure
itself.

Nothing is guessed. Each change is compiled and runs, and one is named only if it makes the failed case, every public case
and a case of each hidden kind right.
"""

import re
from itertools import islice

from grader.box.warm import JailTrouble
from grader.judge.diagnose import LANES, RACE
from grader.judge.failed import Failed
from grader.judge.kernel_changes import changes
from grader.judge.kernel_evidence import KernelEvidence
from grader.judge.other_launch import OutOfTime, Trial, given, others

MOST_S = 8.0  # of processor time for all that is tried
MOST_CHANGES = 250
AT_ONCE = 12  # that are lowered together
LINES = re.compile(r"\blines? (\d+)")


def sentence(evidence: KernelEvidence, purpose: int, failed: Failed) -> str:
    """Name the first change that makes all these cases right, or return an empty text."""
    if failed.facts.get("known") or evidence.question.prepare or evidence.runs[purpose].plan is None:
        return ""
    if failed.told in (RACE, LANES) or "need an other=" in failed.look:
        return ""  # the report names the cause of a race, and of lanes that a mask switches off
    blamed = {int(line) for line in LINES.findall(f"{failed.came} {failed.look}")}
    # the others are drawn once a change makes the failed case right
    trial, first, rest = Trial(evidence, purpose, most_s=MOST_S), given(evidence, purpose), []
    try:
        found = islice(changes(evidence.source, blamed), MOST_CHANGES)
        while some := list(islice(found, AT_ONCE)):
            for number in trial.right_texts([change.source for change in some], first):
                change, rest = some[number], rest or list(others(evidence, purpose, most=None))
                if trial.of_source(change.source, rest):
                    which = f"all {1 + len(rest)} cases right that were tried"
                    return f"line {change.line} of the cell: {change.words} makes {which}"
    except (JailTrouble, OutOfTime, SyntaxError, RecursionError):
        pass
    return ""
