"""Let an answer prepare weights before the rest of a case is drawn. The jail runs it once, after every text is fixed.

The processes that run it lower nothing, hear of no activation, and are gone before one is drawn. They return arrays
of the shapes that the plans had named, in the bytes that the question allows.

Weights may be in memory in any order, and an answer must leave them as they are: both show here.
"""

from dataclasses import replace

import numpy as np

from grader.jail import host as jail
from grader.jail.protocol import Lowered, Packs, Plan
from grader.judge.branches import array_of
from grader.judge.failed import Failed
from grader.questions import Case
from grader.questions.memory import extent, strides
from grader.questions.model import TRANSPOSED, Prepare

WEIGHTS = 10_000  # and a case's purpose, because weights are drawn apart from their activations
ORDERS = 903  # the purpose that draws how hidden weights are stored
LAYOUTS = "", TRANSPOSED, "spread 2"  # in turn, so that three hidden cases in a row have all of them
COPY = "change a copy: {0} = {0}.copy()"


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
        evidence.weights[purpose] = stored(evidence, purpose, drawn)
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
            names = [name for n, name in enumerate(evidence.weights[order[one]]) if n in result.changed]
            evidence.changed[order[one]] = names, result.line
    return replace(found, plans=tuple(plans), printed=tuple(printed))


def stored(evidence, purpose: int, weights: dict) -> dict:
    """Return the weights of a case. Each array of a hidden case is stored row by row, column by column or with gaps."""
    if purpose not in evidence.hidden:
        return weights
    first = evidence.rng(ORDERS).integers(len(LAYOUTS), size=len(weights))
    turns = dict(zip(weights, first, strict=True))
    return {
        name: placed(value, LAYOUTS[(turns[name] + purpose) % len(LAYOUTS)]) if is_array(value) else value
        for name, value in weights.items()
    }


def placed(array: np.ndarray, layout: str) -> np.ndarray:
    """Return the same numbers in a layout that a tensor of a case may have."""
    steps = strides(array.shape, layout)
    storage = np.zeros(extent(array.shape, steps), array.dtype)
    steps = [step * array.itemsize for step in steps]
    view = np.lib.stride_tricks.as_strided(storage, array.shape, steps)
    view[...] = array
    return view


def is_array(value) -> bool:
    return isinstance(value, np.ndarray)


def laid_out(weights: dict) -> list[str]:
    """Return the names of the arrays that aren't row by row in memory."""
    return [name for name, one in weights.items() if is_array(one) and not one.flags.c_contiguous]


def in_rows(weights: dict) -> dict:
    """Return the same weights, row by row in memory."""
    return {name: np.ascontiguousarray(one) if is_array(one) else one for name, one in weights.items()}


def said(evidence, purpose: int) -> str:
    """Say how the weights of a shown case are stored, or nothing if all are row by row."""
    weights = evidence.weights.get(purpose, {})
    orders = {}
    for name in laid_out(weights):
        order = "column by column" if weights[name].flags.f_contiguous else "with gaps between numbers"
        orders.setdefault(order, []).append(name)
    told = "; ".join(f"{' and '.join(names)} {order}" for order, names in orders.items())
    return f" (in memory: {told})" if told else ""


def refuse_changed(evidence, purpose: int, where: str) -> None:
    """Raise Failed if the answer's function changed an array that it was given."""
    if evidence.question.prepare is None:
        return
    evidence.of_case(purpose)
    names, line = evidence.changed.get(purpose, ((), None))
    if names:
        entry, listed = evidence.question.prepare.entry, " and ".join(names)
        came = f"{entry} changes {listed} in place" + f", in line {line} of the cell" * bool(line)
        raise Failed(
            f"{where}: {came}. The arrays are the caller's", COPY.format(names[0]), told=came, known=True
        )
