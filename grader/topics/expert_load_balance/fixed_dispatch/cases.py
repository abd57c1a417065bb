"""Draw the inputs of *fixed dispatch*, and set its budgets."""

import numpy as np

from grader.questions import Together
from grader.questions.draws import between
from grader.topics.expert_load_balance.shared import OWN, TO_ONE, handed_on, holding, tokens


def fixed(rng, kind, numbers=(), plain=False):
    """Draw tokens, and room for them: half the time as much as a rank needs, and always where one rank gets all tokens,
    so that no slot is empty."""
    found, per = tokens(rng, kind, numbers)
    full = not plain and (kind in TO_ONE or rng.random() < 0.5)
    room = max(1, *(len(x) for x, _, _ in found)) + (0 if full else between(rng, 1, 5))
    made = found if plain else [(handed_on(rng, kind, x), *more) for x, *more in found]
    return Together(tuple((x, topk_ids, len(found) * per, room) for x, topk_ids, _ in made), kind)


def with_own(rng, numbers):
    """Draw tokens whose rows hold numbers of the cell, each possibly a mark of something."""
    case = fixed(rng, "four ranks", plain=True)
    each = ((holding(rng, x, numbers), *more) for x, *more in case.each)
    return Together(tuple(each), OWN)


def masked_rows(each, serves=None):
    """Return (rows, counts) of every rank: each expert's rows first in its room, zeros after them."""
    ranks, per, room = len(each), each[0][2] // len(each), each[0][3]
    serves = serves or (lambda topk_ids, expert: (topk_ids == expert).any(axis=1))
    found = []
    for rank in range(ranks):
        rows = np.zeros((per, ranks * room, each[0][0].shape[1]), np.float32)
        counts = np.zeros(per, int)
        for slot in range(per):
            mine = np.concatenate([x[serves(topk_ids, rank * per + slot)] for x, topk_ids, _, _ in each])
            rows[slot, : len(mine)], counts[slot] = mine, len(mine)
        found.append((rows, counts))
    return found


def slot_bytes(each) -> int:
    """Bytes of one slot: a row of x and its choices, four bytes a number."""
    x, topk_ids = each[0][:2]
    return 4 * (x.shape[1] + topk_ids.shape[1])


def most_of_slots(each, copies: int = 1) -> np.ndarray:
    """Return the bytes that each rank sends when it fills `copies` times its room for every other rank."""
    return np.full(len(each), (len(each) - 1) * each[0][3] * copies * slot_bytes(each))


def by_pairs(each) -> np.ndarray:
    return most_of_slots(each, each[0][1].shape[1])


def in_float64(each) -> np.ndarray:
    return 2 * most_of_slots(each)
