"""Draws after top-k by groups of 64: what is often wrong, and answers that hold for some values alone."""

import numpy as np

from grader.questions.families import dense, family, one_stride, within_limit
from grader.topics.sampling_fusion import filters, rows
from grader.topics.sampling_fusion.mistakes import (
    GREEDY,
    NEVER_GREEDY,
    ONE_SEED,
    ROUNDED_TO_FP16,
    TEMPERATURES,
    of_each_row,
    row_by_row,
    with_tables,
)
from grader.topics.sampling_fusion.mistakes_filtered import among, as_bits_order, capped_k
from kernels.sampling_fusion.cost import GROUP


def maxima(x) -> np.ndarray:
    """The largest of each group of 64 neighbours."""
    x = np.asarray(x, np.float64)
    return np.append(x, np.full(-x.size % GROUP, -np.inf)).reshape(-1, GROUP).max(1)


def in_groups(chosen, size: int) -> np.ndarray:
    """True for each of `size` tokens whose group is among the chosen ones."""
    return np.isin(np.arange(size) // GROUP, chosen)


def best_groups(x, k: int, later: bool = False) -> np.ndarray:
    """The k groups with the best maxima, ascending; of equals the earlier, or the later."""
    best = maxima(x)
    order = np.lexsort((np.arange(best.size) * (-1 if later else 1), -best))
    return np.sort(order[:k])


def of_groups(count, later: bool = False):
    """The k best tokens of `count(k)` groups."""

    def stays(x, t, k, p, m):
        x = np.asarray(x, np.float64)
        there = in_groups(best_groups(x, count(k), later), x.size)
        return rows.survivors(np.where(there, x, -np.inf), t, (k, p, m)) & there

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
    """The noise of a token's place among those read again."""
    k = int(inputs["top_k"][i])
    token = np.flatnonzero(in_groups(best_groups(x, k), x.size))
    noise = rows.gumbel_of(rows.uniform(int(inputs["seed"][i]), np.arange(token.size)))
    stays = rows.survivors(x, t, (k, 1.0, 0.0))[token]
    return int(token[rows.best(np.where(stays, x[token] / t + noise, -np.inf))])


def _scaled(inputs, i, x, t, u):
    """The noise divided by the temperature as well."""
    stays = rows.survivors(x, t, rows.filters(inputs, i))
    return rows.best(np.where(stays, (x + rows.gumbel_of(u)) / t, -np.inf))


GROUPED = (
    family(
        "maxima alone",
        "a group may hold several of the k best: read all of its 64 tokens again, not its maximum alone",
        among(maxima_alone),
    ),
    family(
        "whole groups",
        "the k best groups hold the k best tokens and many more: of all that is read again, top-k has to choose once more",
        among(whole_groups),
    ),
    family(
        "too few groups",
        "the k best tokens may lie in k different groups: choose as many groups as top_k asks for",
        *(among(of_groups(lambda k, most=most: min(k, most))) for most in (32, 16, 8)),
        among(of_groups(lambda k: max(1, k - 1))),
        among(of_groups(lambda k: -(-k // GROUP))),
    ),
    family(
        "the later group",
        "of groups with equal maxima the earlier counts as the better, as with tokens",
        among(of_groups(lambda k: k, later=True)),
    ),
    family(
        "noise by place",
        "the noise belongs to a token's id in its row, not to its place among those that are read again",
        row_by_row(_by_place),
    ),
    family(
        "minus zero",
        "-0.0 and 0.0 are equal, so the lower id is first; their bits are not: -(bits & 0x7FFFFFFF) turns both into 0",
        among(lambda x, t, k, p, m: rows.survivors(as_bits_order(x), t, (k, p, m))),
    ),
    GREEDY,
    NEVER_GREEDY,
    family(
        "noise scaled",
        "as if there were no temperature: it divides the logit alone, before the noise is added",
        row_by_row(_scaled),
    ),
    ONE_SEED,
    *(
        family(name, sentence, among(stays), among(stays, nothing=0))
        for name, (sentence, stays) in filters.READ_OTHERWISE.items()
        if name in ("ties all stay", "highest id first")
    ),
    *of_each_row("temperature", "top_k"),
    ROUNDED_TO_FP16,
)


GROUPED_SHORTCUTS = {
    "temperature from a table": with_tables(temperature=TEMPERATURES),
    "top_k up to 50": capped_k,
    **{f"V up to {most}": within_limit("V", most) for most in (64, 1024, 4096, 65536, 100_000)},
    **{f"B up to {most}": within_limit("B", most) for most in (8, 16, 32)},
    **{f"stride {axis} of logits taken for 1": one_stride("logits", axis) for axis in (0, 1)},
    "logits taken for dense": dense("logits"),
}
