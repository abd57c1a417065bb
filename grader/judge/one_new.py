"""Draw second calls of ranks in which one argument alone is new, mostly the same numbers in another order.

What an answer keeps from one call may be found again by a part of the arguments, or by what they add up to. Then it also
serves a call to which it doesn't belong.
"""

import re
from collections.abc import Iterator

import numpy as np

from grader.questions import RanksQuestion, Together

KIND = "a second call in the same process, in which only {} is new"
TRIED = 20
SEEN = 1e-3  # the least difference of results


def calls(question: RanksQuestion, cases: list[Together], rng: np.random.Generator) -> Iterator[tuple]:
    """Yield (a case's index, the same case with one argument new, whether it comes in the arrays of the first call) for each
    argument. Once all numbers take other places, and once two rows or columns do. The cases are of a public one's kind,
    because others hold numbers that go together."""
    kinds = {case.kind for case in question.public}
    plain = [i for i, case in enumerate(cases) if case.kind in kinds]
    for at, name in enumerate(arguments(question)):
        for refilled in (False, True):
            for i in rng.choice(plain, TRIED) if plain else ():
                each = cases[i].each
                new = with_new(question, each, at, in_part=refilled, rng=rng)
                if usual(cases, new, at) and differ(question.reference(each), question.reference(new)):
                    yield i, Together(new, KIND.format(name)), refilled
                    break


def arguments(question: RanksQuestion) -> list[str]:
    """Return the names of the arguments after the communicator, as the question's text has them."""
    call = re.match(re.escape(question.entry) + r"\(comm, ([^)]*)\)", question.asks)
    return call[1].split(", ")


def with_new(question: RanksQuestion, each: tuple, at: int, *, in_part: bool, rng: np.random.Generator):
    """Return what the ranks have, with one argument new. Of an argument with a row for each token one rank keeps its own, as
    it learns of the others from them alone. Rows or columns of matrices change places alike on all ranks, which may have copies."""
    first = each[0][at]
    if not isinstance(first, np.ndarray):
        return tuple((*given[:at], given[at] + len(each), *given[at + 1 :]) for given in each)
    if first.dtype.kind == "b":  # where experts are, whose matrices go with them
        return question.moved(rng, each) if question.moved else each
    stays, of_token = int(rng.integers(len(each))), at < question.of_tokens
    axis = int(rng.choice([-2, -1]))
    alike = None if of_token else order(first.shape[axis], in_part, rng)
    found = []
    for rank, given in enumerate(each):
        own = given[at]
        if not of_token:
            own = own.take(alike, axis)
        elif rank != stays:
            own = own[order(len(own), in_part, rng)]
        found.append((*given[:at], own, *given[at + 1 :]))
    return tuple(found)


def order(count: int, in_part: bool, rng: np.random.Generator) -> np.ndarray:
    """Draw an order of all rows, or one in which two have changed places."""
    if not in_part:
        return rng.permutation(count)
    found = np.arange(count)
    pair = rng.choice(count, min(2, count), replace=False)
    found[pair] = pair[::-1]
    return found


def usual(cases: list[Together], each: tuple, at: int) -> bool:
    """Return whether a number is no larger than it may be, as the largest of all cases."""
    return not isinstance(each[0][at], int) or each[0][at] <= max(case.each[0][at] for case in cases)


def differ(results: list, others: list) -> bool:
    """Return whether any rank's results differ by more than rounding."""
    pairs = zip(map(as_tuple, results), map(as_tuple, others), strict=True)
    with np.errstate(over="ignore"):  # between numbers of any size, which are handed on
        return any(
            one.shape != other.shape or not np.allclose(one, other, SEEN, SEEN, equal_nan=True)
            for here, there in pairs
            for one, other in zip(here, there, strict=True)
        )


def as_tuple(result) -> tuple:
    return result if isinstance(result, tuple) else (result,)
