"""Say why an answer spends too much in one case alone: what the metered case spends of the same limit, and whether the
same sizes keep it with other values.

Nothing is guessed. The case runs again with values drawn anew, and with those of the first public case.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace

from grader.box.warm import JailTrouble
from grader.judge.failed import Failed, Refusal, Unclear
from grader.judge.kernel_evidence import KernelEvidence, Run
from grader.questions import Case
from grader.questions.reach import words

OTHER_SEED = 20_27
TIGHT = 0.8  # of a limit, above which a multiple of it is no chance
LARGE = 2  # from which on a share is said as a factor
WHOLE = 0.02  # how far a count may be from a whole multiple
MOST_TIMES = 8  # beyond which nearly any count is that near
ANEW = "other numbers of the same kind and sizes keep this limit: which values make a program do more?"
PLAIN = "ordinary values of the same sizes keep this limit: which values make a program do more?"


def look(
    evidence: KernelEvidence,
    run: Run,
    usual: str,
    keeps: Callable[[Run], bool],
    shares: tuple[float, float, float],
    named: bool = False,
) -> str:
    """Return where to look. `usual` is the limit's own hint, `named` if it names lines, and `shares` are the shares of the
    limit that the metered case and this one spend, and this one's share with the room that its size has."""
    by_values = because_of_values(evidence, run, keeps)
    compared, multiple = against_metered(*shares)
    multiple = "" if named else multiple
    return "; ".join(filter(None, (compared, by_values or multiple or usual)))


def against_metered(there: float, here: float, said: float | None = None) -> tuple[str, str]:
    """Return the sentence with both shares, and a question if one is a small whole multiple of the other. `said` is the
    share to name for this case, if its limit has room."""
    if not 0 < there <= 1 < here:
        return "", ""
    times = round(here / there)
    said = said or here
    amount = f"{said:.0%}" if said < LARGE else f"{said:.3g} times the limit"
    whole = there >= TIGHT and 1 < times <= MOST_TIMES and abs(here / there / times - 1) < WHOLE
    return (
        f"the metered case spends {there:.0%} of this limit, and this one {amount}",
        f"what is done {times} times here, and once there?" if whole else "",
    )


def because_of_values(evidence: KernelEvidence, run: Run, keeps: Callable[[Run], bool]) -> str:
    """Return the sentence that blames values, if the same sizes keep the limit with others."""
    purpose = evidence.purpose_of(run)
    if purpose not in (*evidence.public, *evidence.hidden):
        return ""
    for case, said in with_other_values(evidence, run.case):
        again = KernelEvidence(evidence.question, evidence.source, OTHER_SEED, level=evidence.level)
        again.cases = {purpose: case}
        try:
            other = again.run(purpose)
        except (Failed, Refusal, Unclear, JailTrouble):
            return ""
        if other.outcome.error:
            return ""
        if keeps(other):
            return said
    return ""


def with_other_values(evidence: KernelEvidence, case: Case) -> Iterator[tuple[Case, str]]:
    yield case, ANEW
    plain = evidence.question.public[0].values
    if words(case) != plain == words(evidence.question.public[0]):
        yield replace(case, values=plain, parts=()), PLAIN
