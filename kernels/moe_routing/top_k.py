"""The choice inside the router's kernel: k best experts of each row of logits, and their weights.

A score and its expert make one 64-bit key that sorts like the score and, among equals, puts the lower expert first.
So a maximum also gives its index, no tie is left to chance, and any bits at all, NaN too, choose k different experts
that exist.
"""

import triton
import triton.language as tl

from kernels.moe_routing.rules import Rule

NOTHING = tl.constexpr(-(2**63))  # below every key
FIRST = tl.constexpr(0x7FFFFFFF)
NO_SLOT = tl.constexpr(-1)


def constants(rule: Rule) -> dict:
    """Return the constants of `choose` for a rule."""
    return {
        "SCORES": rule.scores,
        "RENORMALISE": rule.renormalise,
        "GROUPS": rule.groups,
        "KEPT": rule.groups_kept,
        "SCALE": rule.scale,
        "GP": triton.next_power_of_2(rule.groups),
    }


@triton.jit
def key_of(score, index):
    score = tl.where(score == 0.0, 0.0, score)  # -0 is no less than 0
    bits = score.to(tl.int32, bitcast=True)
    ordered = tl.where(bits < 0, bits ^ 0x7FFFFFFF, bits)
    return (ordered.to(tl.int64) << 32) | (FIRST - index).to(tl.int64)


@triton.jit
def index_of(key):
    return FIRST - (key & 0x7FFFFFFF).to(tl.int32)


@triton.jit
def score_of(key):
    ordered = (key >> 32).to(tl.int32)
    return tl.where(ordered < 0, ordered ^ 0x7FFFFFFF, ordered).to(tl.float32, bitcast=True)


@triton.jit
def worth_of_groups(key, offs_e, GROUPS: tl.constexpr, EACH: tl.constexpr, GP: tl.constexpr):
    """(rows, GP): the key of each group, by the sum of its two best scores."""
    offs_g = tl.arange(0, GP)
    if key.shape[1] == GP * EACH and EACH > 1:  # no padding: one reduction serves all groups
        each = tl.reshape(key, (key.shape[0], GP, EACH))
        best = tl.max(each, 2)
        second = tl.max(tl.where(each == best[:, :, None], NOTHING, each), 2)
        worth = key_of(score_of(best) + score_of(second), offs_g[None, :])
    else:
        worth = tl.zeros((key.shape[0], GP), tl.int64) + NOTHING
        for g in range(GROUPS):
            mine = tl.where((offs_e // EACH == g)[None, :], key, NOTHING)
            best = tl.max(mine, 1)
            score = score_of(best)
            if EACH > 1:
                score += score_of(tl.max(tl.where(mine == best[:, None], NOTHING, mine), 1))
            worth = tl.where((offs_g == g)[None, :], key_of(score, g)[:, None], worth)
    return worth


@triton.jit
def in_best_groups(
    key, offs_e, GROUPS: tl.constexpr, KEPT: tl.constexpr, EACH: tl.constexpr, GP: tl.constexpr
):
    """Return the experts in the KEPT groups whose two best scores have the largest sums."""
    worth = worth_of_groups(key, offs_e, GROUPS, EACH, GP)
    kept = key < NOTHING
    for _ in range(KEPT):
        best = tl.max(worth, 1)
        worth = tl.where(worth == best[:, None], NOTHING, worth)
        kept = kept | ((offs_e // EACH)[None, :] == index_of(best)[:, None])
    return kept


@triton.jit
def choose(
    logits,
    bias_ptr,
    E: tl.constexpr,
    TOP_K: tl.constexpr,
    SCORES: tl.constexpr,
    RENORMALISE: tl.constexpr,
    GROUPS: tl.constexpr,
    KEPT: tl.constexpr,
    SCALE: tl.constexpr,
    HAS_BIAS: tl.constexpr,
    EP: tl.constexpr,
    KP: tl.constexpr,
    GP: tl.constexpr,
):
    """(topk_ids, topk_weights), both (rows, KP), and slots (rows, EP): an expert's slot in its token, or NO_SLOT.

    Of logits (rows, EP) in fp32 E columns count, and TOP_K columns of the results.
    """
    offs_e = tl.arange(0, EP)
    offs_k = tl.arange(0, KP)
    mask_e = (offs_e < E)[None, :]
    score = logits
    if SCORES == "sigmoid":
        score = 1.0 / (1.0 + tl.exp(-logits))
    by = score
    if HAS_BIAS:
        by = score + tl.load(bias_ptr + offs_e, mask=offs_e < E, other=0.0).to(tl.float32)[None, :]
    key = tl.where(mask_e, key_of(by, offs_e[None, :]), NOTHING)
    if GROUPS > 1:
        key = tl.where(in_best_groups(key, offs_e, GROUPS, KEPT, E // GROUPS, GP), key, NOTHING)
    topk_ids = tl.zeros((logits.shape[0], KP), tl.int32)
    topk_weights = tl.zeros((logits.shape[0], KP), tl.float32)
    slots = tl.zeros((logits.shape[0], EP), tl.int32) + NO_SLOT
    for slot in range(TOP_K):
        best = tl.max(key, 1)
        at = key == best[:, None]
        key = tl.where(at, NOTHING, key)
        slots = tl.where(at, slot, slots)
        mine = score_of(best)
        if HAS_BIAS:
            mine = tl.sum(tl.where(at, score, 0.0), 1)
        topk_ids = tl.where((offs_k == slot)[None, :], index_of(best)[:, None], topk_ids)
        topk_weights = tl.where((offs_k == slot)[None, :], mine[:, None], topk_weights)
    real = (offs_k < TOP_K)[None, :]
    if SCORES != "sigmoid":
        over = tl.where(mask_e, logits, float("-inf"))
        if SCORES == "softmax of chosen":
            over = tl.where(real, topk_weights, float("-inf"))
        top = tl.max(over, 1)[:, None]
        topk_weights = tl.exp(topk_weights - top) / tl.sum(tl.exp(over - top), 1)[:, None]
    if RENORMALISE:
        topk_weights = topk_weights / tl.sum(tl.where(real, topk_weights, 0.0), 1)[:, None]
    return topk_ids, topk_weights * SCALE, slots


@triton.jit
def with_shared(topk_ids, topk_weights, offs_k, E: tl.constexpr, TOP_K: tl.constexpr):
    """Return the same pair with the shared experts appended to the chosen ones, with weight 1."""
    is_routed = offs_k < TOP_K
    return tl.where(is_routed, topk_ids, E - TOP_K + offs_k), tl.where(is_routed, topk_weights, 1.0)
