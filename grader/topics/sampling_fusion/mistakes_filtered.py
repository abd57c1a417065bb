"""Draws with top-k, top-p and min-p: what is often wrong, and answers that hold for some values alone."""

import numpy as np

from grader.questions import Case
from grader.questions.draws import rounded
from grader.questions.families import computing, dense, family, one_stride, within_limit
from grader.topics.sampling_fusion import filters, rows
from grader.topics.sampling_fusion.mistakes import (
    GREEDY,
    NEVER_GREEDY,
    ONE_SEED,
    ROUNDED_TO_FP16,
    TEMPERATURES,
    first_row,
    of_each_row,
    row_by_row,
    scored,
    with_inputs,
    with_tables,
)
from kernels.sampling_fusion import reference


def among(stays, nothing: int = -1):
    """The tokens drawn among those that `stays(x, t, top_k, top_p, min_p)` flags; `nothing` where it flags none."""

    def drawn(inputs, i, x, t, u):
        score = np.where(stays(x, t, *rows.filters(inputs, i)), x / t + rows.gumbel_of(u), -np.inf)
        return nothing if score.max() == -np.inf else rows.best(score)

    return row_by_row(drawn)


def dropped_to(number: float):
    """Tokens that the filters rule out keep a score: this number."""

    def drawn(inputs, i, x, t, u):
        return rows.best(np.where(filters_of(x, t, inputs, i), x / t + rows.gumbel_of(u), number))

    return row_by_row(drawn)


def filters_of(x, t, inputs, i):
    return rows.survivors(x, t, rows.filters(inputs, i))


def as_bits_order(x):
    """Logits with -0.0 below 0.0, where the bits of a float have it."""
    x = np.asarray(x, np.float64)
    return np.where((x == 0) & np.signbit(x), -1e-30, x)


def never_off_in_fp32(x, t, k, p, m):
    """Top-p of 1 cuts what the rounding of an fp32 sum leaves no mass for."""
    ranking = reference.Ranking.of(np.asarray(x, np.float64), t)
    weight = ranking.weight.astype(np.float32)
    whole = np.cumsum(weight[: k or None])[-1]
    before = np.cumsum(weight) - weight
    keep = reference.kept(ranking, k, 1.0, m) & (before < np.float32(p) * whole)
    flags = np.zeros(len(x), bool)
    flags[ranking.token[keep]] = True
    return flags


def mass_in(dtype: str):
    """Top-p by weights that are rounded to so few bits before they are added up."""

    def stays(x, t, k, p, m):
        ranking = reference.Ranking.of(np.asarray(x, np.float64), t)
        weight = rounded(ranking.weight, dtype).astype(np.float64)
        before = np.cumsum(weight) - weight
        keep = reference.kept(ranking, k, 1.0, m) & ((before < p * weight[: k or None].sum()) | (p >= 1))
        flags = np.zeros(len(x), bool)
        flags[ranking.token[keep]] = True
        return flags

    return stays


def last_of_equals(inputs, i, x, t, u):
    """Of equal scores the highest id; without a temperature nothing is filtered."""
    s = np.where(filters_of(x, t, inputs, i), x / t + rows.gumbel_of(u), -np.inf) if t else x
    return int(np.flatnonzero(s == s.max())[-1]) if s.max() > -np.inf else -1


FILTERED = (
    family(
        "highest of equals",
        "of equal scores the lowest id is drawn",
        row_by_row(last_of_equals, cold=True),
    ),
    family(
        "minus zero",
        "-0.0 and 0.0 are equal, so the lower id is first; their bits are not: -(bits & 0x7FFFFFFF) turns both into 0",
        among(lambda x, t, k, p, m: rows.survivors(as_bits_order(x), t, (k, p, m))),
    ),
    family(
        "a number for minus infinity",
        "a token that is ruled out has a score of -inf: logits may lie below any number that stands for it",
        *map(dropped_to, (-1e4, -1e9)),
    ),
    family(
        "no filter",
        "a token was drawn that the filters had ruled out",
        scored(lambda x, t, u: x / t + rows.gumbel_of(u)),
    ),
    GREEDY,
    NEVER_GREEDY,
    ONE_SEED,
    *(
        family(name, sentence, among(stays), among(stays, nothing=0))
        for name, (sentence, stays) in filters.READ_OTHERWISE.items()
    ),
    *of_each_row("temperature", "top_p", "min_p"),
    ROUNDED_TO_FP16,
)


@computing
def capped_k(inputs: dict, case: Case) -> dict:
    return rows.tokens_wanted(inputs | {"top_k": np.minimum(inputs["top_k"], 50)}, case)


one_top_k = computing(with_inputs(top_k=first_row))
FILTERED_SHORTCUTS = {
    "top-p of 1 by an fp32 sum": computing(among(never_off_in_fp32)),
    "weights of bf16": computing(among(mass_in("bf16"))),
    "temperature from a table": with_tables(temperature=TEMPERATURES),
    "top_k up to 50": capped_k,
    "the first row's top_k for all": one_top_k,
    "top_p from a table": with_tables(top_p=(0.35, 0.5, 0.62, 0.83, 0.9, 0.95, 1.0)),
    "min_p from a table": with_tables(min_p=(0.0, 0.02, 0.05, 0.1, 0.3, 0.4, 0.58)),
    **{f"V up to {most}": within_limit("V", most) for most in (64, 256, 1024, 2047)},
    **{f"stride {axis} of logits taken for 1": one_stride("logits", axis) for axis in (0, 1)},
    "logits taken for dense": dense("logits"),
}
