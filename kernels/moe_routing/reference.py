"""Compute a mixture-of-experts layer in six steps, in float64, as the only reference of the topic.

    logits -> 1 route -> 2 count -> 3 permute -> 4 experts -> 5 un-permute -> 6 combine

A token's k choices are (token, expert) pairs, numbered token * k + slot. Permuting brings the pairs of one expert
together, in the order of the tokens, and pads each expert's rows to whole tiles, so that a tile belongs to one expert.
Any routing is legal, since an expert without a token has no tile, and no tokens at all give no rows. `direct` is the
same layer token by token, without permuting or padding, as the result that the six steps must equal.
Weights are as linear layers keep them: gate_up (experts, 2 * intermediate, hidden), the rows of gate before those of up,
and down (experts, hidden, intermediate). Shared experts, which every token visits with weight 1, come last.
"""

from dataclasses import dataclass

import numpy as np

from kernels import require
from kernels.moe_routing.rules import Rule

EMPTY = -1  # a row of padding belongs to no pair; vLLM fills such rows with an index past the last pair


def _double(x) -> np.ndarray:
    return np.asarray(x).astype(np.float64)


def _softmax(scores: np.ndarray) -> np.ndarray:
    """Over the last axis."""
    powers = np.exp(scores - scores.max(-1, keepdims=True))
    return powers / powers.sum(-1, keepdims=True)


def sigmoid(scores: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-scores))


def silu(x: np.ndarray) -> np.ndarray:
    return x / (1 + np.exp(-x))


# Step 1: route


def top_k(scores: np.ndarray, k: int) -> np.ndarray:
    """Return (tokens, k) indices of the largest, best first, of equals the lower index. -inf is legal, NaN is not."""
    scores = _double(scores)
    if np.isnan(scores).any():
        raise ValueError("scores must be numbers, got NaN; look for what overflowed before the router")
    require.count(k=k)
    require.at_most(scores.shape[-1], "a token picks different experts", k=k)
    return np.argsort(-scores, axis=-1, kind="stable")[..., :k]


def _by_their_sum(topk_weights: np.ndarray) -> np.ndarray:
    return topk_weights / topk_weights.sum(-1, keepdims=True)


def _open(scores: np.ndarray, groups: int, kept: int) -> np.ndarray:
    """Return the scores, with -inf for experts outside the best groups. A group's score is the sum of its two best."""
    tokens, experts = scores.shape
    if groups == 1:
        return scores
    each = scores.reshape(tokens, groups, experts // groups)
    worth = -np.sort(-each, -1)[..., :2].sum(-1)
    best = np.zeros((tokens, groups), bool)
    np.put_along_axis(best, top_k(worth, kept), True, -1)
    return np.where(best[..., None], each, -np.inf).reshape(tokens, experts)


def choice_scores(logits, rule: Rule, bias=None) -> np.ndarray:
    """Return the scores that decide, -inf for closed experts. A kernel's choice may differ among near-equals alone."""
    logits = _double(logits)
    scores = sigmoid(logits) if rule.scores == "sigmoid" else logits
    return _open(scores if bias is None else scores + _double(bias), rule.groups, rule.groups_kept)


def weights_of(logits, topk_ids: np.ndarray, rule: Rule) -> np.ndarray:
    """Return the weights of experts that are already chosen."""
    logits = _double(logits)
    picked = np.take_along_axis(logits, topk_ids, -1)
    if rule.scores == "softmax of chosen":
        topk_weights = _softmax(picked)
    elif rule.scores == "sigmoid":
        topk_weights = sigmoid(picked)
    else:
        topk_weights = np.take_along_axis(_softmax(logits), topk_ids, -1)
    return rule.scale * (_by_their_sum(topk_weights) if rule.renormalise else topk_weights)


def route(logits, rule: Rule, bias=None, shared: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Return (topk_ids, topk_weights), both (tokens, top_k + shared), by any rule. Shared experts follow with weight 1."""
    logits = _double(logits)
    experts = logits.shape[-1]
    rule.check(experts)
    topk_ids = top_k(choice_scores(logits, rule, bias), rule.top_k)
    topk_weights = weights_of(logits, topk_ids, rule)
    last = np.broadcast_to(experts + np.arange(shared), (len(logits), shared))
    return np.concatenate([topk_ids, last], 1), np.concatenate([topk_weights, np.ones(last.shape)], 1)


# Steps 2 and 3: count, permute


@dataclass(frozen=True)
class Order:
    """Hold which (token, expert) pair is in which row once experts come together, in tiles of `tile` rows."""

    tile: int
    loads: np.ndarray  # (experts,) pairs of each
    expert_offsets: np.ndarray  # (experts + 1,) the first row of each, and the end, all multiples of the tile
    sorted_token_ids: np.ndarray  # (rows,) the pair in each row, or EMPTY
    inv_permuted_idx: np.ndarray  # (tokens, k) the row of each pair
    expert_ids: np.ndarray  # (tiles,) whose each tile is

    @property
    def rows(self) -> int:
        return len(self.sorted_token_ids)


def count(topk_ids: np.ndarray, experts: int) -> np.ndarray:
    """Return the number of (token, expert) pairs of each expert."""
    return np.bincount(np.asarray(topk_ids).ravel(), minlength=experts)


def padded(loads: np.ndarray, tile: int) -> np.ndarray:
    """Return the rows of each expert in whole tiles, none for an expert without a pair."""
    return -(-np.asarray(loads) // tile) * tile


def order(topk_ids: np.ndarray, experts: int, tile: int = 1) -> Order:
    """Order pairs by expert. Tokens keep their order within an expert, and a tile of 1 pads nothing."""
    require.count(experts=experts, tile=tile)
    flat = np.asarray(topk_ids).ravel()
    if flat.size and not (0 <= flat.min() and flat.max() < experts):
        raise ValueError(
            f"topk_ids must be from 0 to {experts - 1}, got {flat.min()} to {flat.max()}; count experts from 0"
        )
    loads = count(flat, experts)
    expert_offsets = np.concatenate([[0], np.cumsum(padded(loads, tile))])
    by_expert = np.argsort(flat, kind="stable")
    before = np.concatenate([[0], np.cumsum(loads)])[:-1]  # pairs of lower experts
    row = expert_offsets[flat[by_expert]] + np.arange(flat.size) - before[flat[by_expert]]
    sorted_token_ids = np.full(expert_offsets[-1], EMPTY)
    sorted_token_ids[row] = by_expert
    inv_permuted_idx = np.empty(flat.size, int)
    inv_permuted_idx[by_expert] = row
    expert_ids = np.repeat(np.arange(experts), np.diff(expert_offsets) // tile)
    inv_permuted_idx = inv_permuted_idx.reshape(np.shape(topk_ids))
    return Order(tile, loads, expert_offsets, sorted_token_ids, inv_permuted_idx, expert_ids)


def permute(x, found: Order) -> np.ndarray:
    """Return (rows, hidden), the token of each row's pair. Rows of padding are zeros."""
    x, k = _double(x), found.inv_permuted_idx.shape[1]
    rows = np.zeros((found.rows, x.shape[1]))
    real = found.sorted_token_ids != EMPTY
    rows[real] = x[found.sorted_token_ids[real] // k]
    return rows


# Step 4: experts


def gated(rows, gate_up) -> np.ndarray:
    """silu(rows @ gate.T) * (rows @ up.T) of one expert."""
    both = _double(rows) @ _double(gate_up).T
    gate, up = np.split(both, 2, -1)
    return silu(gate) * up


def expert(rows, gate_up, down) -> np.ndarray:
    """A gated MLP, whole."""
    return gated(rows, gate_up) @ _double(down).T


def grouped(rows, found: Order, gate_up, down) -> np.ndarray:
    """Return (rows, hidden), each tile through its expert."""
    out = np.zeros((found.rows, np.shape(down)[1]))
    for e in np.flatnonzero(found.loads):
        mine = slice(found.expert_offsets[e], found.expert_offsets[e + 1])
        out[mine] = expert(rows[mine], gate_up[e], down[e])
    return out


# Steps 5 and 6: un-permute, combine


def un_permute(rows: np.ndarray, found: Order) -> np.ndarray:
    """Return (tokens, k, hidden), each pair's row back at its token."""
    return rows[found.inv_permuted_idx]


def combine_pairs(restored: np.ndarray, topk_weights: np.ndarray) -> np.ndarray:
    """Return (tokens, hidden), the sum of each token's weighted rows, added in the order of its slots."""
    return np.einsum("tkh,tk->th", restored, _double(topk_weights))


# All tokens


@dataclass(frozen=True)
class Forward:
    """Every step's result."""

    logits: np.ndarray
    topk_ids: np.ndarray
    topk_weights: np.ndarray
    order: Order
    permuted: np.ndarray
    expert_rows: np.ndarray
    restored: np.ndarray
    combined: np.ndarray


def six_steps(x, router, gate_up, down, rule: Rule, *, bias=None, shared: int = 0, tile: int = 1) -> Forward:
    """Run the layer on x (tokens, hidden), router (experts, hidden), weights of experts + shared."""
    logits = _double(x) @ _double(router).T
    topk_ids, topk_weights = route(logits, rule, bias, shared)
    found = order(topk_ids, len(gate_up), tile)
    permuted = permute(x, found)
    rows = grouped(permuted, found, gate_up, down)
    restored = un_permute(rows, found)
    combined = combine_pairs(restored, topk_weights)
    return Forward(logits, topk_ids, topk_weights, found, permuted, rows, restored, combined)


def direct(x, topk_ids, topk_weights, gate_up, down) -> np.ndarray:
    """Compute the same sum token by token, for any choice of experts, without counting, permuting or padding."""
    x, topk_weights = _double(x), _double(topk_weights)
    out = np.zeros((len(x), np.shape(down)[1]))
    for t, ids in enumerate(np.asarray(topk_ids)):
        for e, weight in zip(ids, topk_weights[t], strict=True):
            out[t] += weight * expert(x[t], gate_up[e], down[e])
    return out
