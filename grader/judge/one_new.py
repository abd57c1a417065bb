"""Draw second calls of ranks in which one argument alone is new, mostly the same numbers in another order.

What an answer keeps from one call may be found again by a part of the arguments, by what they add up to, or by a rank's
own. Then it also serves a call to which it doesn't belong.
"""

import re
from collections.abc import Iterable, Iterator

import numpy as np

from grader.questions import RanksQuestion, Together

KIND = "a second call in the same process, in which only {} is new"
OF_ONE_RANK = "{} of one rank"
TRIED = 20
SEEN = 1e-3  # the least difference of results


def calls(question: RanksQuestion, cases: list[Together], rng: np.random.Generator) -> Iterator[tuple]:
    """Yield (a case's index, the same case with one argument new, whether it comes in the arrays of the first call) for each
    argument. Once all numbers take other places, once two rows or columns do, once two rows of many tokens, and once all
    numbers of one rank alone. The cases are of a public one's kind, because others hold numbers that go together. A kind
    that begins with a public one's differs in its sizes alone."""
    kinds = {case.kind for case in question.public}
    plain = [i for i, case in enumerate(cases) if case.kind in kinds]
    like = [i for i, case in enumerate(cases) if case.kind.startswith(tuple(kinds))]
    most = sorted(like, key=lambda i: sum(len(given[0]) for given in cases[i].each))[-1:]
    for at, name in enumerate(arguments(question)):
        ways = [(plain, False), (plain, True)]
        if at < question.of_tokens:  # a few rows that are probed tell a few tokens apart, and not many
            ways.append((most, True))
        for among, refilled in ways:
            for i in rng.choice(among, TRIED) if among else ():
                each = cases[i].each
                new = with_new(question, each, at, in_part=refilled, rng=rng)
                if usual(cases, new, at) and ranks_told(question, each, new):
                    yield i, Together(new, KIND.format(name)), refilled
                    break
    turn = int(rng.integers(12))
    for at, name in enumerate(arguments(question)):
        if plain and of_a_rank(cases[plain[0]].each[0][at]):
            turn += 1  # so that each rank keeps all of its own in one call or more
            if found := on_one_rank(question, [(i, cases[i].each) for i in plain], at, turn, rng):
                i, new = found
                yield i, Together(new, KIND.format(OF_ONE_RANK.format(name))), True


def on_one_rank(question: RanksQuestion, tried: list[tuple], at: int, turn: int, rng: np.random.Generator):
    """Return (a case's index, what its ranks have with one argument of one rank new), of the case in which most other ranks
    have other results, or None."""
    found, most = None, -1
    for i, each in (tried[place] for place in rng.permutation(len(tried))):
        rank = turn % len(each)
        new = with_new_on(question, each, at, rank, rng)
        told = ranks_told(question, each, new)
        if told and len(told - {rank}) > most:
            found, most = (i, new), len(told - {rank})
        if most == len(each) - 1:
            break
    return found


def of_a_rank(argument) -> bool:
    """Return whether each rank has this argument of its own: not a number, nor where experts are."""
    return isinstance(argument, np.ndarray) and argument.dtype.kind != "b"


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
    alike = None if of_token else order(np.arange(first.shape[axis])[:, None], in_part, rng)
    found = []
    for rank, given in enumerate(each):
        own = given[at]
        if not of_token:
            own = own.take(alike, axis)
        elif rank != stays:
            own = own[order(own, in_part, rng)]
        found.append((*given[:at], own, *given[at + 1 :]))
    return tuple(found)


def with_new_on(question: RanksQuestion, each: tuple, at: int, rank: int, rng: np.random.Generator) -> tuple:
    """Return what the ranks have, with one argument of one rank new. Of matrices only those change of which no other rank
    has a copy."""
    own = each[rank][at]
    if at < question.of_tokens:
        own = own[rng.permutation(len(own))]
    else:
        others = matrices([given for other, given in enumerate(each) if other != rank])
        axis, alone = int(rng.choice([-2, -1])), not_among(others, own)
        own = own.copy()
        own[alone] = own[alone].take(rng.permutation(own.shape[axis]), axis)
    given = (*each[rank][:at], own, *each[rank][at + 1 :])
    return (*each[:rank], given, *each[rank + 1 :])


def matrices(each: Iterable[tuple]) -> frozenset[bytes]:
    """Return all matrices that these ranks have."""
    stacks = [one for given in each for one in given if isinstance(one, np.ndarray) and one.ndim == 3]
    return frozenset(matrix.tobytes() for stack in stacks for matrix in stack)


def not_among(known: frozenset[bytes], stack: np.ndarray) -> np.ndarray:
    """Return for each matrix whether it is none of those known."""
    return np.array([matrix.tobytes() not in known for matrix in stack], bool)


def order(rows: np.ndarray, in_part: bool, rng: np.random.Generator) -> np.ndarray:
    """Draw an order of all rows, or one in which two have changed places, with few numbers in common or none, so that
    tokens go to other ranks."""
    if not in_part or len(rows) < 2:
        return rng.permutation(len(rows))
    pairs = [rng.choice(len(rows), 2, replace=False) for _ in range(TRIED)]
    pair = min(pairs, key=lambda two: np.isin(*rows[two]).sum())
    found = np.arange(len(rows))
    found[pair] = pair[::-1]
    return found


def usual(cases: list[Together], each: tuple, at: int) -> bool:
    """Return whether a number is no larger than it may be, as the largest of all cases."""
    return not isinstance(each[0][at], int) or each[0][at] <= max(case.each[0][at] for case in cases)


def ranks_told(question: RanksQuestion, each: tuple, new: tuple) -> set[int]:
    """Return the ranks whose results differ by more than rounding."""
    results, others = question.reference(each), question.reference(new)
    with np.errstate(over="ignore"):  # between numbers of any size, which are handed on
        return {
            rank
            for rank, (here, there) in enumerate(zip(results, others, strict=True))
            for one, other in zip(as_tuple(here), as_tuple(there), strict=True)
            if one.shape != other.shape or not np.allclose(one, other, SEEN, SEEN, equal_nan=True)
        }


def as_tuple(result) -> tuple:
    return result if isinstance(result, tuple) else (result,)
