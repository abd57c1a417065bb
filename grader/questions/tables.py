"""Words that the topics' tables of wrong answers share."""


def changed(*edits: tuple[str, str], part: str = "values", mistake: str = "") -> tuple:
    """A wrong answer's row: the part of the check that it must lose, the right answer's text replaced (before, after),
    and the mistake that the report must name, where it has one."""
    return part, list(edits), mistake


def because(reasons: dict[str, list[str]]) -> dict[str, str]:
    """One reason for several mutants: mutant -> reason."""
    return {mutant: why for why, mutants in reasons.items() for mutant in mutants}
