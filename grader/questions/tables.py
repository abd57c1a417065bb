"""Words that the topics' tables of wrong answers share."""


def because(reasons: dict[str, list[str]]) -> dict[str, str]:
    """One reason for several mutants: mutant -> reason."""
    return {mutant: why for why, mutants in reasons.items() for mutant in mutants}
