"""Replace the clock, where there is none, by the time that a chip takes for the counted work."""

from grader.questions.model import Budget
from kernels.machines import MACHINES

CHIP = MACHINES["H200"]
LIMITS = "which limit is the larger: bytes, operations by their kind (a conversion takes eight times a sum), or tl.dot?"


def timed(each: float, of: float, one: str) -> Budget:
    """Allow at most `each` cycles of a lane for each of these numbers, with `one` as the name of one number. If moving
    all tensors a few times takes longer, allow that time (account.py)."""
    return Budget(
        what=f"time on an {CHIP.name} by these counts",
        count="time",
        most=CHIP.issue_time({"float": each * of}),
        per=(of, one),
        look=LIMITS,
        model=f"{each:g} clock cycles of one lane for each {one}, or the time of moving every tensor three times, if that is longer",
    )
