"""Draw the inputs of *replicated layer*, and set its budgets."""

import numpy as np

from grader.questions import Together
from grader.questions.draws import between
from grader.topics.expert_load_balance.shared import (
    ALIKE,
    AT_HOME,
    DRAWN,
    FULL,
    HIDDEN_SIZE,
    LARGE,
    LONGER,
    MANY,
    MOST_EXPERTS,
    MOST_TOKENS,
    NANS,
    NEAR,
    OUTLIER,
    SHUT,
    TIMES,
    TWINS,
    alike,
    beyond_fp16,
    counts,
    keep_at_home,
    of_any_size,
    of_any_weight,
    put_first,
    row_bytes,
    size,
    there_and_back,
    tokens_of,
    weights_of,
    with_an_outlier,
    with_nan,
    with_shut_gates,
    with_twins,
)
from kernels.expert_load_balance import cost, reference

EVEN, MORE = 1.2, 5  # rows of others that a rank may receive, over what copies in turn leave the busiest
SHAPES = {  # kind -> (tokens of each rank, experts, spare copies, share of tokens with the hot expert)
    "four ranks": lambda rng: ([between(rng, 20, 30) for _ in range(4)], 8, 4, 0.0),
    "a hot expert": lambda rng: ([between(rng, 24, 32) for _ in range(4)], 8, 2, 0.9),
    "no spare copy": lambda rng: ([between(rng, 9, 20) for _ in range(4)], 8, 0, 0.3),
    "two ranks": lambda rng: ([between(rng, 9, 20) for _ in range(2)], 5, 1, 0.5),
    "nearly all tokens on one rank": lambda rng: (
        rng.permutation([between(rng, 70, 90), 3, 2, 4]).tolist(),
        8,
        4,
        0.6,
    ),
    "a rank without tokens": lambda rng: ([between(rng, 9, 20), 0, between(rng, 9, 20), 7], 8, 4, 0.5),
}
EVEN_OUT = "hundreds of tokens for an expert with three copies"
SHAPES[EVEN_OUT] = lambda rng: ([between(rng, 200, 240) for _ in range(4)], 4, 2, 1.0)
SHAPES[LARGE] = lambda rng: ([between(rng, 9, 20) for _ in range(3)], 6, 2, 0.5)
SHAPES["hundreds of experts"] = lambda rng: ([between(rng, 5, 9) for _ in range(3)], 280, 20, 0.0)
ALL_HELD, ELSEWHERE = "hundreds of experts, all on one rank and some on the next", 10
SHAPES[ALL_HELD] = lambda rng: ([between(rng, 5, 9) for _ in range(3)], MOST_EXPERTS, 0, 0.0)
FEW_EACH = "two copies of each of many experts, for two tokens of a rank"
SHAPES[FEW_EACH] = lambda rng: ([2, experts := 2 * between(rng, 55, 75), experts, 3], experts, experts, 0.0)
ONCE_EACH = "two copies of each of many experts, for one token of each rank"
SHAPES[ONCE_EACH] = lambda rng: ([experts := 2 * between(rng, 55, 75)] * 4, experts, experts, 0.0)
ONE_PROMPT, ONE_PROMPTS = "tokens of a hot expert that come one after another", 0.4
SHAPES[ONE_PROMPT] = lambda rng: ([between(rng, 200, 240) for _ in range(4)], 8, 1, 0.0)
SHAPES["hundreds of tokens"] = lambda rng: ([between(rng, 600, MOST_TOKENS), 3], 5, 1, 0.0)
SHAPES[LONGER] = lambda rng: ([between(rng, 5, 9), between(rng, 60, 90), 6], between(rng, 20, 24), 3, 0.3)
HOTTEST = 4  # experts that share the hot tokens of drawn sizes
MOST_FOR_ONE = "as many tokens as there may be, for an expert with three copies"
SHAPES[MOST_FOR_ONE] = lambda rng: ([between(rng, 670, MOST_TOKENS) for _ in range(4)], 4, 2, 1.0)
SHAPES[FULL] = lambda rng: ([MOST_TOKENS] * 4, MOST_EXPERTS, between(rng, 2, 3), 0.95)
SHAPES[SHUT] = lambda rng: ([between(rng, 20, 30) for _ in range(3)], 6, 2, 0.3)
ONE_CHOICE = EVEN_OUT, MOST_FOR_ONE, FULL, ONE_PROMPT, SHUT  # of a token
SHAPES["a rank alone"] = lambda rng: ([between(rng, 5, 12)], between(rng, 2, 5), 0, 0.0)
SHAPES[NANS] = lambda rng: ([between(rng, 20, 30) for _ in range(3)], 6, 2, 0.3)
SHAPES[ALIKE] = lambda rng: ([between(rng, 20, 30) for _ in range(4)], 8, 4, 0.4)

SHAPES[OUTLIER] = lambda rng: ([between(rng, 9, 20) for _ in range(3)], 6, 2, 0.3)
SHAPES[AT_HOME] = lambda rng: ([between(rng, 5, 12) for _ in range(3)], between(rng, 9, 12), 0, 0.0)


def drawn_shape(rng, numbers=()):
    ranks = between(rng, 2, 4)
    experts = max(2, size(rng, MOST_EXPERTS, numbers))
    tokens = [size(rng, MOST_TOKENS, numbers) for _ in range(ranks)]
    return tokens, experts, between(rng, 0, min(12, experts)), rng.random()


SHAPES[DRAWN] = drawn_shape
PUBLIC = ("four ranks", "a hot expert", "no spare copy")
HIDDEN = (*SHAPES, "a hot expert", *["nearly all tokens on one rank"] * 3, *[DRAWN] * (TIMES - 1))
# Turns of many tokens leave such a batch to one copy. The other ranks have a token or two.
FEW = 2  # tokens of a rank that sends no batch
BATCH = "a batch of one rank, nearly all of it for an expert with copies on all other ranks"
SHAPES[BATCH] = lambda rng: (
    with_few(rng, between(rng, 24, 32), between(rng, 2, 3)),
    between(rng, 3, 6),
    0,
    0.9,
)
SMALL_BATCH = "a small batch of one rank, all of it for an expert with copies on all other ranks"
SHAPES[SMALL_BATCH] = lambda rng: (
    with_few(rng, between(rng, 16, 18), between(rng, 2, 3)),
    between(rng, 3, 6),
    0,
    1.0,
)
TWO_BATCHES = "small batches of two ranks, all for an expert with copies on the other two"
SHAPES[TWO_BATCHES] = lambda rng: (  # of every other rank, which begin at the same copy
    np.roll([between(rng, 8, 10), between(rng, 1, FEW)] * 2, between(rng, 0, 1)).tolist(),
    between(rng, 3, 6),
    0,
    1.0,
)
BATCHES = BATCH, SMALL_BATCH, TWO_BATCHES
SHAPES[TWINS] = lambda rng: ([between(rng, 9, 16) for _ in range(4)], between(rng, 8, 12), 3, 0.0)
SHAPES[MANY] = lambda rng: ([between(rng, 200, 240) for _ in range(4)], 8, 4, 0.0)
HIDDEN = (*HIDDEN, *BATCHES, TWINS, MANY)  # last, so that the others stay as they were drawn


def with_few(rng, tokens: int, others: int) -> list[int]:
    """Return the tokens of each rank: of one as many as this, and of each other a token or two."""
    return rng.permutation([tokens, *(between(rng, 1, FEW) for _ in range(others))]).tolist()


def drawn(rng, kind, numbers=()):
    tokens, experts, spare, hot = drawn_shape(rng, numbers) if kind == NEAR else SHAPES[kind](rng)
    free = kind in (DRAWN, NEAR)
    top_k, columns = (between(rng, 3, 5), between(rng, 40, 60)) if kind == LONGER else (2, HIDDEN_SIZE)
    top_k = between(rng, 1, min(4, experts)) if free else 1 if kind in ONE_CHOICE else top_k
    later = free or kind == FULL or kind in BATCHES  # whose hot experts are others
    found = tokens_of(rng, tokens, experts, top_k, 0.0 if later else hot, columns=columns)
    if kind == ONCE_EACH:
        found = [(x, rng.permutation(experts)[: len(x), None], w[:, :1]) for x, _, w in found]
    if kind == ONE_PROMPT:
        found = [of_one_prompt(experts, *one) for one in found]
    if kind == FEW_EACH:
        found = [(x, twice_each(rng, experts)[: len(x)], w) for x, _, w in found]
    if free or kind == FULL:
        top = experts if kind == FULL else between(rng, 1, experts)
        near = top - 1 - np.arange(min(HOTTEST, top))
        hottest = far_apart(top) if kind == FULL or rng.random() < 0.3 else near
        for _, topk_ids, _ in found:
            put_first(rng, topk_ids, hottest, hot)
    if kind == NANS:
        found = [with_nan(rng, *one) for one in found]
    if free:
        found = [of_any_weight(rng, *one) for one in found]
    if kind == ALIKE or (free and rng.random() < 0.5):
        found = [alike(rng, *one) for one in found]
    if kind == TWINS:
        found = with_twins(rng, found, experts)
    if kind == LARGE:
        found = [(beyond_fp16(rng, x), *more) for x, *more in found]
    weights = weights_of(rng, experts, columns)
    if kind == SHUT:
        found = with_shut_gates(rng, found)
    if kind == OUTLIER:
        found, weights = with_an_outlier(rng, found, weights)
    if free and rng.random() < 0.5:
        found, weights = of_any_size(rng, found, weights)
    loads = reference.loads_of(np.concatenate([topk_ids for _, topk_ids, _ in found]), experts)
    placement = cost.replicate(loads.tolist(), len(tokens), spare)
    holders = np.array([[rank in copies for rank in range(len(tokens))] for copies in placement])
    if kind == ALL_HELD:
        holders[:] = np.arange(len(tokens)) == 0
        holders[rng.choice(experts, ELSEWHERE, replace=False), 1] = True
    if kind == AT_HOME:
        keep_at_home(rng, found, holders, rng.integers(len(tokens)))
    if kind in BATCHES:
        send_away(rng, found, holders, hot)
    weights = [np.abs(w) for w in weights] if kind in (LARGE, SHUT) else weights
    return Together(
        tuple((*one, holders, *(w[holders[:, rank]] for w in weights)) for rank, one in enumerate(found)),
        kind,
    )


def send_away(rng, found, holders, share: float) -> None:
    """Let a share of the tokens of the ranks with more than a few choose an expert that all other ranks hold, and these
    tokens alone travel: all else that the ranks need they hold."""
    sends = np.array([len(topk_ids) > FEW for _, topk_ids, _ in found])
    away = rng.integers(len(holders))
    holders[:] = sends | (rng.random(holders.shape) < 0.5)
    holders[away] = ~sends
    for rank, (_, topk_ids, _) in enumerate(found):
        if sends[rank]:
            put_first(rng, topk_ids, [away], share)
            topk_ids[:] = rng.permuted(topk_ids, axis=1)
        else:
            holders[topk_ids, rank] = True


def swapped(rng, each: tuple) -> tuple:
    """Return the same with two experts in each other's places, with as many copies as each other if any two have, so that
    no expert and no rank has more copies than before."""
    holders = each[0][3]
    pairs = np.argwhere((holders[:, None] != holders).any(axis=2))
    alike = pairs[holders[pairs[:, 0]].sum(axis=1) == holders[pairs[:, 1]].sum(axis=1)]
    if not len(pairs):
        return each
    one, other = rng.choice(alike if len(alike) else pairs)
    was = np.arange(len(holders))
    was[[one, other]] = other, one
    return tuple(
        (
            *given[:3],
            holders[was],
            *(
                w[np.searchsorted(np.flatnonzero(holders[:, rank]), was[holders[was, rank]])]
                for w in given[4:]
            ),
        )
        for rank, given in enumerate(each)
    )


def of_one_prompt(experts: int, x, topk_ids, w) -> tuple:
    """Let the first tokens of a rank choose one expert, as those of one prompt may, and the others all others in turn."""
    first = int(ONE_PROMPTS * len(x))
    return x, np.concatenate([[0] * first, np.resize(np.arange(1, experts), len(x) - first)])[:, None], w


def twice_each(rng, experts: int) -> np.ndarray:
    """Return two choices for each of as many tokens as there are experts, of which none is hotter than another."""
    return np.concatenate([rng.permutation(experts) for _ in range(2)]).reshape(-1, 2)


def far_apart(top: int) -> np.ndarray:
    """Return the last of `top` experts, and one whose number differs only in the highest bit, which are the same to a
    table of fewer bits."""
    return np.array([top - 1, (top - 1) ^ (1 << (top - 1).bit_length() >> 1)])


def whole(each):
    """Return gate, up and down of all experts, each from the first rank with a copy."""
    holders = each[0][3]
    first = holders.argmax(axis=1)
    slot = [int(holders[:e, rank].sum()) for e, rank in enumerate(first)]
    return [np.stack([each[r][i][s] for r, s in zip(first, slot, strict=True)]) for i in (4, 5, 6)]


def layer(each, weights=lambda w: w, only=None, times=None):
    experts, found = whole(each), []
    for rank, (x, topk_ids, w, holders, *_) in enumerate(each):
        counted = weights(w) * (times(topk_ids, holders) if times else 1)
        kept = None if only is None else only(holders[topk_ids, rank])
        with np.errstate(over="ignore"):  # exp of a large row, whose sigmoid is 0
            found.append(reference.moe_of_experts(x, topk_ids, counted, *experts, kept))
    return found


def in_turn(each) -> np.ndarray:
    """(senders, receivers): rows that travel when copies take turns."""
    table = np.zeros((len(each), len(each)), int)
    for rank, (_, topk_ids, _, holders, *_) in enumerate(each):
        seen, places = np.full(len(holders), rank), []
        for token in topk_ids:
            copies = [np.flatnonzero(holders[e]) for e in token]
            places.append(
                {
                    rank if holders[e, rank] else int(c[seen[e] % len(c)])
                    for e, c in zip(token, copies, strict=True)
                }
            )
            seen[token] += 1
        for place in places:
            table[rank, list(place)] += 1
    np.fill_diagonal(table, 0)
    return table


def most_rows(each) -> float:
    return EVEN * in_turn(each).sum(axis=0).max(initial=0) + MORE


def _row_bytes(each) -> tuple[int, int]:
    """Return the bytes (of a row on its way out with its choices and weights, of a result)."""
    row, ids = row_bytes(each)
    return row + ids + each[0][2].shape[1] * each[0][2].itemsize, row


def _away(each) -> np.ndarray:
    """Choices of each rank without a copy at home."""
    return np.array(
        [(~holders[topk_ids, rank]).sum() for rank, (_, topk_ids, _, holders, *_) in enumerate(each)]
    )


def most_bytes(each) -> np.ndarray:
    """A row for each choice that has no copy at home, and results of what a rank may receive."""
    there, row = _row_bytes(each)
    return _away(each) * there + most_rows(each) * row + counts(len(each), int(each[0][3].sum(axis=0).max()))


def most_received(each) -> np.ndarray:
    """The other side of it."""
    there, row = _row_bytes(each)
    return most_rows(each) * there + _away(each) * row + counts(len(each), int(each[0][3].sum(axis=0).max()))


def by_copy(copy_of, at_home=True):
    """each -> (senders, receivers): rows that travel where `copy_of`(token's number, its rank, copies) says to which copy."""

    def table(each) -> np.ndarray:
        sent = np.zeros((len(each), len(each)), int)
        for rank, (_, topk_ids, _, holders, *_) in enumerate(each):
            for number, token in enumerate(topk_ids):
                stay = [at_home and holders[e, rank] for e in token]
                copies = [np.flatnonzero(holders[e]) for e in token]
                places = {
                    rank if s else int(copy_of(number, rank, c)) for s, c in zip(stay, copies, strict=True)
                }
                sent[rank, list(places)] += 1
        np.fill_diagonal(sent, 0)
        return sent

    return table


def first_copy(number, rank, copies):
    return copies[0]


def habit(table):
    def spends(each):
        return there_and_back(table(each), *_row_bytes(each))

    return spends


def whose(each, rank, index) -> str:
    token, holders = index[0], each[0][3]
    experts = each[rank][1][token]
    lie = " and ".join(f"expert {e} on ranks {np.flatnonzero(holders[e]).tolist()}" for e in experts)
    return f"token {token} of rank {rank} needs {lie}"
