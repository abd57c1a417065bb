"""Require a minimum number of programs that share the work: on a CPU this replaces a clock that would show how
parallel a kernel is."""

from grader.questions.model import Budget

ALONE = "the grid: programs run side by side, and the rows that one of them walks through alone wait for each other"


def side_by_side(what: str, tensor: str, access: str, least: int, model: str, of_work: bool = True) -> Budget:
    return Budget(
        what=f"programs that {what}",
        tensor=tensor,
        access=access,
        count="programs",
        least=least,
        look=ALONE,
        model=model,
        of_work=of_work,
    )
