"""Draw the inputs of *dispatch tokens*, and set its budgets."""

import numpy as np

from grader.questions import Together
from grader.topics.expert_load_balance.shared import (
    OWN,
    bytes_between,
    counts,
    handed_on,
    holding,
    row_bytes,
    tokens,
)


def dispatched(rng, kind, numbers=(), plain=False):
    found, per = tokens(rng, kind, numbers)
    made = found if plain else [(handed_on(rng, kind, x), *more) for x, *more in found]
    return Together(tuple((x, topk_ids, len(found) * per) for x, topk_ids, _ in made), kind)


def with_own(rng, numbers):
    """Draw tokens whose rows hold numbers of the cell, each possibly a mark of something."""
    case = dispatched(rng, "four ranks", plain=True)
    return Together(tuple((holding(rng, x, numbers), *more) for x, *more in case.each), OWN)


def dispatched_rows(each, rank_of=None):
    per, found = each[0][2] // len(each), []
    lies_on = rank_of or (lambda experts: experts // per)
    for rank in range(len(each)):
        here = [(lies_on(topk_ids) == rank).any(axis=1) for _, topk_ids, _ in each]
        found.append(
            tuple(np.concatenate([given[i][h] for given, h in zip(each, here, strict=True)]) for i in (0, 1))
        )
    return found


def _dispatch_per(each) -> int:
    return each[0][2] // len(each)


def most_of_dispatch(each) -> np.ndarray:
    row, ids = row_bytes(each)
    table = bytes_between(each, _dispatch_per(each))
    return table.sum(axis=1) * (row + ids) + counts(len(each), _dispatch_per(each))


def dispatch_habit(table):
    def spends(each):
        row, ids = row_bytes(each)
        return table(each, _dispatch_per(each)).sum(axis=1) * (row + ids)

    return spends


def from_whom(each, rank, index) -> str:
    """Where a row of dispatch comes from."""
    per, row = each[0][2] // len(each), index[0]
    for sender, (_, topk_ids, _) in enumerate(each):
        tokens = np.flatnonzero((topk_ids // per == rank).any(axis=1))
        if row < len(tokens):
            token = int(tokens[row])
            return f"row {index[0]} on rank {rank} is token {token} of rank {sender}, whose experts are {topk_ids[token].tolist()}"
        row -= len(tokens)
    return ""


def dispatch_in_float64(each) -> np.ndarray:
    x, topk_ids = each[0][:2]
    return bytes_between(each, _dispatch_per(each)).sum(axis=1) * 8 * (x.shape[1] + topk_ids.shape[1])
