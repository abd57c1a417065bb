"""Draw the inputs of *expert layer*, and set its budgets."""

import numpy as np

from grader.questions import Together
from grader.topics.expert_load_balance import shared
from grader.topics.expert_load_balance.shared import (
    bytes_between,
    counts,
    row_bytes,
    there_and_back,
    weights_of,
)
from kernels.expert_load_balance import reference

UNUSED = "hundreds of experts"
SIZED = shared.FULL, *shared.FREE  # kinds whose experts may differ by orders of magnitude


def layered(rng, kind, numbers=()):
    tokens, per = shared.tokens(rng, kind, numbers)
    experts = weights_of(rng, len(tokens) * per, tokens[0][0].shape[1])
    if kind in SIZED and rng.random() < 0.7:
        tokens, experts = shared.of_any_size(rng, tokens, experts)
    if kind == shared.SHUT:
        tokens = shared.with_shut_gates(rng, tokens)
    if kind == shared.OUTLIER:
        tokens, experts = shared.with_an_outlier(rng, tokens, experts)
    if kind in (shared.LARGE, shared.SHUT):
        experts = [np.abs(w) for w in experts]
    if kind == UNUSED:  # experts that no token chose, for which zero times the output is NaN
        unused = np.setdiff1d(np.arange(len(experts[0])), np.concatenate([one[1].ravel() for one in tokens]))
        for w in experts:
            w[unused] = np.nan
    found = [(*one, *(w[rank * per : (rank + 1) * per] for w in experts)) for rank, one in enumerate(tokens)]
    return Together(tuple(found), kind)


def layer(each, weights=lambda w: w, moved=lambda ids, experts: ids, only=None):
    """Compute the topic's reference on each rank's tokens, with all experts at hand. Mistakes change the arguments."""
    gate, up, down = (np.concatenate([given[i] for given in each]) for i in (3, 4, 5))
    found = []
    for rank, (x, ids, w, *_) in enumerate(each):
        kept = None if only is None else only(ids // len(each[0][3]), rank)
        with np.errstate(over="ignore"):  # exp of a large row, whose sigmoid is 0
            found.append(reference.moe_of_experts(x, moved(ids, len(gate)), weights(w), gate, up, down, kept))
    return found


def whose_experts(each, rank, index) -> str:
    """Which ranks the wrong token depends on."""
    token, per = index[0], len(each[0][3])
    experts = each[rank][1][token]
    return f"token {token} of rank {rank} has the experts {experts.tolist()}, which lie on ranks {(experts // per).tolist()}"


def _layer_per(each) -> int:
    return len(each[0][3])


def most_of_layer(each) -> np.ndarray:
    (row, ids), weights = row_bytes(each), each[0][2].shape[1] * each[0][2].itemsize
    table = bytes_between(each, _layer_per(each))
    return there_and_back(table, row + ids + weights, row) + counts(len(each), _layer_per(each))


def layer_habit(there, back=None, choice=False, wide=1):
    """Count bytes. `there` and `back` are rows, `choice` sends one number with a row, `wide` multiplies a result's width."""

    def spends(each):
        (row, ids), per = row_bytes(each), _layer_per(each)
        weights = each[0][2].shape[1] * each[0][2].itemsize
        out = there(each, per).sum(axis=1) * (row + (8 if choice else ids + weights))
        return out + (back or there)(each, per).sum(axis=0) * row * wide

    return spends


def layer_in_float64(each) -> np.ndarray:
    """Row, choices and weights in one array, and results in its type."""
    hidden, top_k = each[0][0].shape[1], each[0][1].shape[1]
    return there_and_back(bytes_between(each, _layer_per(each)), 8 * (hidden + 2 * top_k), 8 * hidden)
