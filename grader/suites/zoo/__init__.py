"""Wrong answers that somebody might well write, one module a topic.

WRONG: question -> name -> (the part that must be lost, [(words, other words), ...], name of the mistake told or "").
EQUIVALENT: question -> mutant -> why it computes the same.
"""


def because(reasons: dict[str, list[str]]) -> dict[str, str]:
    """One reason for several mutants: mutant -> reason."""
    return {mutant: why for why, mutants in reasons.items() for mutant in mutants}
