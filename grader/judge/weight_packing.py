"""Let an answer prepare weights before the rest of a case is drawn. The jail runs it once, after every text is fixed.

The processes that run it lower nothing, hear of no activation, and are gone before one is drawn. They return arrays
of the shapes that the plans had named, in the bytes that the question allows.
"""

from dataclasses import replace

from grader.jail import host as jail
from grader.jail.protocol import Lowered, Packs, Plan
from grader.judge.branches import array_of
from grader.questions import Case
from grader.questions.model import Prepare

WEIGHTS = 10_000  # and a case's purpose, because weights are drawn apart from their activations


def caps(prepare: Prepare | None, case: Case) -> Packs | None:
    """Return the limits of the arrays that an answer may make, or None if it makes none."""
    if prepare is None:
        return None
    return Packs(prepare.entry, prepare.most_arrays, int(prepare.most_bytes(case)))


def arguments(prepare: Prepare | None, case: Case) -> list:
    """Return what is known of the arguments of the cell's own function on weights: plain values, and shapes of arrays."""
    given = prepare.shapes(case).values() if prepare else ()
    return [array_of(one) if isinstance(one, tuple) else one for one in given]


def prepare(evidence, found: Lowered, purposes: list[int]) -> Lowered:
    """Prepare the arrays of the cases that have a plan. If the arrays don't fit a plan, it becomes an error."""
    asks, order = evidence.question.prepare, evidence.order
    plans, printed = list(found.plans), list(found.printed)
    places = [order.index(one) for one in purposes]
    places = [one for one in places if isinstance(plans[one], Plan)]
    if not places:
        return found
    evidence.say(f"preparing the weights of {len(places)} cases")
    for purpose in (order[one] for one in places):
        drawn = evidence.question.drawn_weights(evidence.case(purpose), evidence.rng(WEIGHTS + purpose))
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
