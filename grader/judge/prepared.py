"""What an answer makes of weights before anything else of a case is drawn: asked of the jail, once, with every text fixed.

The processes that run it lower nothing, hear of no activation, and are gone before one is drawn. What they give back is
arrays of the shapes that the plans had named, in the bytes that the question allows.
"""

from dataclasses import replace

from grader.jail import host as jail
from grader.jail.protocol import Lowered, Packs, Plan
from grader.questions import Case
from grader.questions.model import Prepare

WEIGHTS = 10_000  # and a case's purpose: weights are drawn apart from all that will meet them


def caps(prepare: Prepare | None, case: Case) -> Packs | None:
    """What an answer is told of the arrays that it may make; None where it makes none."""
    if prepare is None:
        return None
    return Packs(prepare.entry, prepare.most_arrays, int(prepare.most_bytes(case)))


def prepare(evidence, found: Lowered, purposes: list[int]) -> Lowered:
    """Arrays for those of these cases that have a plan; a plan that its arrays do not fit becomes an error."""
    asks, order = evidence.question.prepare, evidence.order
    plans, printed = list(found.plans), list(found.printed)
    places = [order.index(one) for one in purposes]
    places = [one for one in places if isinstance(plans[one], Plan)]
    if not places:
        return found
    evidence.say(f"preparing the weights of {len(places)} cases")
    for purpose in (order[one] for one in places):
        drawn = asks.weights(evidence.cases[purpose], evidence.rng(WEIGHTS + purpose))
        evidence.weights[purpose] = drawn
    given = [evidence.weights[order[one]] for one in places]
    asked = [plans[one] for one in places]
    outcome, made = jail.prepare(evidence.source, asks.entry, asked, given, evidence.level)
    evidence.count(outcome)
    for one, result in zip(places, made, strict=True):
        printed[one] += result.printed
        if result.error:
            plans[one] = result.error
        else:
            evidence.made[order[one]] = result.arrays
    return replace(found, plans=tuple(plans), printed=tuple(printed))
