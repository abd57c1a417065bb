"""Find one small change of a kernel that makes its cases right. Name its line and what to change there, but not the cure
itself.

Nothing is guessed. Each change is compiled and runs, and one is named only if it makes the failed case, every public case
and some more cases right.
"""

import re
from collections.abc import Iterator
from dataclasses import replace
from itertools import islice

import numpy as np

from grader.box.warm import JailTrouble
from grader.judge import hidden_failure
from grader.judge.failed import Failed
from grader.judge.kernel_changes import changes
from grader.judge.kernel_evidence import KernelEvidence
from grader.judge.other_launch import Given, OutOfTime, Trial
from grader.questions import memory

MOST_S = 5.0  # of processor time for all that is tried
MOST_CHANGES = 150
MORE = 4  # cases, because a chance change may make the public ones right
LINES = re.compile(r"\blines? (\d+)")


def sentence(evidence: KernelEvidence, purpose: int, failed: Failed) -> str:
    """Name the first change that makes all these cases right, or return an empty text."""
    if failed.facts.get("known") or evidence.question.prepare or evidence.runs[purpose].plan is None:
        return ""
    blamed = {int(line) for line in LINES.findall(f"{failed.came} {failed.look}")}
    trial, rest = Trial(evidence, purpose, most_s=MOST_S), list(others(evidence, purpose))
    try:
        for change in islice(changes(evidence.source, blamed), MOST_CHANGES):
            if trial.of_source(change.source, [given(evidence, purpose)]) and trial.of_source(
                change.source, rest
            ):
                which = f"all {1 + len(rest)} cases right that were tried"
                return f"line {change.line} of the cell: {change.words} makes {which}"
    except (JailTrouble, OutOfTime, SyntaxError, RecursionError):
        pass
    return ""


def given(evidence: KernelEvidence, purpose: int) -> Given:
    run = evidence.runs.get(purpose)
    return evidence.cases[purpose], *((run.inputs, run.placed) if run else evidence.draw(purpose))


def others(evidence: KernelEvidence, purpose: int) -> Iterator[Given]:
    """Yield the other public cases, and some like hidden ones from a public seed."""
    yield from (given(evidence, one) for one in evidence.public if one != purpose)
    question, told = evidence.question, evidence.cases[purpose].sm_count
    rng = np.random.default_rng(hidden_failure.SHOWN_SEED)
    for case in list(question.hidden(rng))[:MORE]:
        inputs = question.drawn_inputs(case, rng)
        yield replace(case, sm_count=told), inputs, memory.place(question, case, inputs)
