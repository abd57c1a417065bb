"""Find one small change that makes a ranks answer right. Name its line and what to change there, but not the cure itself.

Nothing is guessed. Each change runs on every rank, and one is named only if it makes the failed case, all public ones and
some more cases right.
"""

from collections.abc import Callable
from itertools import islice

import numpy as np

from grader.box.warm import JailTrouble
from grader.judge import hidden_failure, repair
from grader.judge.failed import Failed
from grader.judge.ranks_evidence import Meeting, RanksEvidence
from grader.questions import Together

MOST_S = 5.0  # of processor time for all that is tried
MOST_CHANGES = 300
MORE = 8  # cases like hidden ones, because a chance change may make the public ones right


def sentence(evidence: RanksEvidence, case: Together, trouble: Callable[[Meeting], Failed | None]) -> str:
    """Name the first change that makes this case and the others right, or return an empty text."""
    question, spent = evidence.question, 0.0
    rng = np.random.Generator(np.random.PCG64([hidden_failure.SHOWN_SEED, 0]))
    rest = [*question.public, *list(evidence.drawn_from(rng))[:MORE]]
    try:
        for change in islice(repair.changes(evidence.source, question.entry), MOST_CHANGES):
            again = RanksEvidence(question, change.source, hidden_failure.SHOWN_SEED, level=evidence.level)
            right = not any(map(trouble, again.meet([case], False)))
            if right and not any(map(trouble, again.meet(rest, False))):
                return f"line {change.line}: {change.words} makes all {1 + len(rest)} cases right that were tried"
            spent += again.spent_s
            if spent > MOST_S:
                break
    except (Failed, JailTrouble, SyntaxError, RecursionError):
        pass
    return ""
