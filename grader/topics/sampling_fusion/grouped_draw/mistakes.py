"""List the mistakes of *grouped draw*, a row each."""

import numpy as np

from grader.questions.families import dense, family, one_stride, within_limit
from grader.questions.rows import edited
from grader.topics.sampling_fusion.shared_mistakes import (
    GREEDY,
    NEVER_GREEDY,
    ONE_SEED,
    READ_OTHERWISE,
    ROUNDED_TO_FP16,
    TEMPERATURES,
    among,
    as_bits_order,
    capped_k,
    of_each_row,
    row_by_row,
    with_tables,
)
from grader.topics.sampling_fusion.shared_rows import best, filters, gumbel_of, survivors, uniform
from kernels.sampling_fusion.cost import GROUP


def maxima(x) -> np.ndarray:
    """The largest of each group of 64 neighbours."""
    x = np.asarray(x, np.float64)
    return np.append(x, np.full(-x.size % GROUP, -np.inf)).reshape(-1, GROUP).max(1)


def in_groups(chosen, size: int) -> np.ndarray:
    """True for each of `size` tokens whose group is among the chosen ones."""
    return np.isin(np.arange(size) // GROUP, chosen)


def best_groups(x, k: int, later: bool = False) -> np.ndarray:
    """Return the k groups with the best maxima, ascending. Among equals take the earlier, or the later."""
    best = maxima(x)
    order = np.lexsort((np.arange(best.size) * (-1 if later else 1), -best))
    return np.sort(order[:k])


def of_groups(count, later: bool = False):
    """The k best tokens of `count(k)` groups."""

    def stays(x, t, k, p, m):
        x = np.asarray(x, np.float64)
        there = in_groups(best_groups(x, count(k), later), x.size)
        return survivors(np.where(there, x, -np.inf), t, (k, p, m)) & there

    return stays


def maxima_alone(x, t, k, p, m):
    """Of each of the best groups its first best token, and no other."""
    x = np.asarray(x, np.float64)
    first = np.zeros(x.size, bool)
    for group in best_groups(x, k):
        first[group * GROUP + np.argmax(x[group * GROUP : (group + 1) * GROUP])] = True
    return first


def whole_groups(x, t, k, p, m):
    """All tokens of the k best groups."""
    return in_groups(best_groups(x, k), len(x))


def _by_place(inputs, i, x, t, u):
    """Use the noise of a token's index among those read again."""
    k = int(inputs["top_k"][i])
    token = np.flatnonzero(in_groups(best_groups(x, k), x.size))
    noise = gumbel_of(uniform(int(inputs["seed"][i]), np.arange(token.size)))
    stays = survivors(x, t, (k, 1.0, 0.0))[token]
    return int(token[best(np.where(stays, x[token] / t + noise, -np.inf))])


def _scaled(inputs, i, x, t, u):
    """The noise divided by the temperature as well."""
    stays = survivors(x, t, filters(inputs, i))
    return best(np.where(stays, (x + gumbel_of(u)) / t, -np.inf))


GROUPS_K = "tl.minimum(tl.load(top_k_ptr + b), GROUPS)"
TOKENS_K = "tl.minimum(tl.load(top_k_ptr + b), V)"
KEPT = f"keep = k_largest(x, {TOKENS_K}) & there"
SCORE = "score = tl.where(t == 0, x, x / tl.where(t == 0, 1.0, t) + noise)"
FIRST = "tl.cumsum(tie.to(tl.int32), 0) <= room"


MISTAKES = (
    family(
        "maxima alone",
        "a group may hold several of the k best: read all of its 64 tokens again, not only its maximum",
        among(maxima_alone),
        edits=(
            (
                KEPT,
                "keep = there & (at % 64 == tl.reshape(tl.broadcast_to(tl.argmax(tl.reshape(x, (64, 64)), 1)[:, None], (64, 64)), (PLACES,)))",
            ),
        ),
    ),
    family(
        "whole groups",
        "the k best groups hold the k best tokens and many more: choose the top k once more among all tokens that are read again",
        among(whole_groups),
        edits=((KEPT, "keep = there"),),
    ),
    family(
        "too few groups",
        "the k best tokens may be in k different groups: choose as many groups as top_k says",
        *(among(of_groups(lambda k, most=most: min(k, most))) for most in (32, 16, 8)),
        among(of_groups(lambda k: max(1, k - 1))),
        among(of_groups(lambda k: -(-k // GROUP))),
        edits=((GROUPS_K, f"tl.minimum({GROUPS_K}, 16)"),),
    ),
    family(
        "the later group",
        "of groups with equal maxima the earlier group ranks higher, as with tokens",
        among(of_groups(lambda k: k, later=True)),
        edits=(
            (
                "    keep = k_largest(best,",
                '    back = GROUPS - 1 - group\n    best = tl.load(maxima_ptr + b * GROUPS + back, mask=group < GROUPS, other=float("-inf"))\n    keep = k_largest(best,',
            ),
            ("- 1, group, mask=keep)", "- 1, back, mask=keep)"),
            (
                "    offs = group * 64 + at % 64\n",
                "    group = tl.sort(tl.load(chosen_ptr + b * 64 + tl.arange(0, 64)))\n    group = tl.reshape(tl.broadcast_to(group[:, None], (64, 64)), (PLACES,))\n    offs = group * 64 + at % 64\n",
            ),
        ),
    ),
    family(
        "noise by place",
        "the noise belongs to a token's id in its row, not to its index among the tokens that are read again",
        row_by_row(_by_place),
        edits=(("tl.load(seed_ptr + b), offs)", "tl.load(seed_ptr + b), at)"),),
    ),
    family(
        "minus zero",
        "-0.0 and 0.0 are equal, so the lower id is first; their bits are not: -(bits & 0x7FFFFFFF) turns both into 0",
        among(lambda x, t, k, p, m: survivors(as_bits_order(x), t, (k, p, m))),
        edits=(
            ("-(bits & 0x7FFFFFFF)", "bits ^ 0x7FFFFFFF"),
            (GROUPS_K, "tl.minimum(64, GROUPS)"),
        ),
    ),
    GREEDY,
    NEVER_GREEDY,
    family(
        "noise scaled",
        "the temperature has no effect here: divide the logit by it before you add the noise",
        row_by_row(_scaled),
        edits=((SCORE, "score = tl.where(t == 0, x, (x + noise) / tl.where(t == 0, 1.0, t))"),),
    ),
    ONE_SEED,
    *(
        family(name, sentence, among(stays), among(stays, nothing=0))
        for name, (sentence, stays) in READ_OTHERWISE.items()
        if name in ("ties all stay", "highest id first")
    ),
    *of_each_row("temperature", "top_k"),
    ROUNDED_TO_FP16,
    edited("a group too few", (GROUPS_K, f"tl.maximum(1, {GROUPS_K} - 1)"), told_as="too few groups"),
    edited("no top-k at all", (GROUPS_K, "GROUPS"), (KEPT, "keep = there")),
    edited("the place for the token", ("(score == best), offs,", "(score == best), at,")),
    edited("always greedy", (SCORE, "score = x + 0 * noise"), told_as="always greedy"),
    edited("never greedy", (SCORE, "score = x / tl.where(t == 0, 1.0, t) + noise"), told_as="never greedy"),
    edited("one seed for all", ("tl.load(seed_ptr + b)", "tl.load(seed_ptr)"), told_as="one seed"),
    edited(
        "one temperature for all",
        ("tl.load(temperature_ptr + b)", "tl.load(temperature_ptr)"),
        told_as="one temperature",
    ),
    edited("one top_k for all", ("tl.load(top_k_ptr + b)", "tl.load(top_k_ptr)"), told_as="one top_k"),
    edited(
        "all ties stay",
        (
            KEPT,
            'keep = (x >= tl.min(tl.where(k_largest(x, tl.minimum(tl.load(top_k_ptr + b), V)), x, float("inf")), 0)) & there',
        ),
        told_as="ties all stay",
    ),
    edited("as many equals as all together", ("room = k - tl.sum((key > low).to(tl.int32), 0)", "room = k")),
    edited(
        "the highest ids first",
        (FIRST, "tl.cumsum(tie.to(tl.int32), 0, reverse=True) <= room"),
        told_as="highest id first",
    ),
    edited(
        "at most 48 of a large vocabulary",
        (
            KEPT,
            "keep = k_largest(x, tl.minimum(tl.load(top_k_ptr + b), tl.where(V > 100000, 48, V))) & there",
        ),
    ),
    edited("the tail left out", ("groups = triton.cdiv(p.V, 64)", "groups = max(1, p.V // 64)")),
    edited("maxima of 65,536 logits at most", ("offs < V, other", "(offs < V) & (offs < 65536), other")),
    edited(
        "read in half precision",
        (".to(tl.float32)", ".to(tl.float16).to(tl.float32)"),
        told_as="rounded to fp16",
    ),
    edited(
        "maxima read twice",
        (
            "    tl.store(maxima_ptr",
            '    x = tl.maximum(x, tl.load(row + offs * stride_logitsv, mask=offs < V, other=float("-inf")).to(tl.float32))\n    tl.store(maxima_ptr',
        ),
        part="traffic",
    ),
    edited(
        "logits kept in scratch",
        ("logits_ptr, maxima_ptr, V", "logits_ptr, maxima_ptr, kept_ptr, V"),
        (
            "    tl.store(maxima_ptr",
            "    tl.store(kept_ptr + b * V + offs, x, mask=offs < V)\n    tl.store(maxima_ptr",
        ),
        ('"scratch": {', '"scratch": {"kept": ((p.B, p.V), "fp32", 0), '),
        part="traffic",
    ),
)


SHORTCUTS = {
    "temperature from a table": with_tables(temperature=TEMPERATURES),
    "top_k up to 50": capped_k,
    **{f"V up to {most}": within_limit("V", most) for most in (64, 1024, 4096, 65536, 100_000)},
    **{f"B up to {most}": within_limit("B", most) for most in (8, 16, 32)},
    **{f"stride {axis} of logits taken for 1": one_stride("logits", axis) for axis in (0, 1)},
    "logits taken for dense": dense("logits"),
}
