"""The judge of the share of a gap: launches and bytes that the machine counted, between a plain version's and the least."""

from typing import NamedTuple

from grader.judge.failed import Failed
from grader.judge.kernel_evidence import METERED, KernelEvidence
from grader.judge.record import PartResult
from grader.judge.traffic import amount, spent
from grader.questions import Budget, Part
from grader.questions.timed import CHIP

MOVED = Budget(what="all that moves", access="any")
CLOSED = 0.99  # a few bytes of scratch don't count as a gap
LOOK = "launches cost most at this size: which of yours could be one, and which bytes move only between them?"


class Spent(NamedTuple):
    launches: int
    bytes: float

    @property
    def seconds(self) -> float:
        """Return the time of a host that waits for each launch, and the memory's time."""
        return self.launches * CHIP.launch_s + self.bytes / CHIP.bandwidth

    def __str__(self) -> str:
        return f"{self.launches} launch{'es' * (self.launches != 1)} and {amount(self.bytes, MOVED)}"


def share_closed(plain: Spent, own: Spent, least: Spent) -> float:
    """Return the share of the gap that is closed, from 0 to 1."""
    share = (plain.seconds - own.seconds) / (plain.seconds - least.seconds)
    return min(1.0, max(0.0, share))


def judge(evidence: KernelEvidence, part: Part, result: PartResult) -> None:
    gap, run = evidence.question.gap, evidence.run(METERED)
    result.evidence = "counted here on the CPU"
    plain, least = Spent(*gap.plain(run.case)), Spent(*gap.least(run.case))
    own = Spent(len(run.launches), spent(run, MOVED))
    share = share_closed(plain, own, least)
    result.facts = {"gap_closed": share, "spent_launches": own.launches, "spent_bytes": own.bytes}
    result.asked = f"the gap from {gap.words} ({plain}) to what must be spent ({least})"
    result.asked_openly = f"the gap from {gap.words} to what must be spent"
    result.came = f"{share:.0%} of the gap closed, with {own}"
    result.told = f"{share:.0%} of the gap closed"
    if share < CLOSED:
        points = round(part.points * share, 2)
        raise Failed(result.came, LOOK, told=result.told, points=points, **result.facts)
