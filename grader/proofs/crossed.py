"""Judge the values of right answers in the crossings that a check may draw (grader/questions/reach.py)."""

from grader.judge import diagnose
from grader.judge.failed import Failed, Unclear
from grader.judge.kernel_evidence import KernelEvidence


def failures(question, source: str, seed: int) -> list[str]:
    """Return the crossings of one check that an answer fails, with the results."""
    evidence = KernelEvidence(question, source, seed)
    evidence.cases = {purpose: case for purpose, case in evidence.known.items() if case.crossed}
    found = []
    for purpose, case in evidence.cases.items():
        try:
            diagnose.judge_case(question, evidence.run(purpose), [], evidence)
        except (Failed, Unclear) as failed:
            found.append(f"{case}: {failed}")
    return found
