"""List the mistakes of *filtered draw*, a row each."""

import numpy as np

from grader.questions.draws import rounded
from grader.questions.families import computing, dense, family, one_stride, within_limit
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
    first_row,
    of_each_row,
    row_by_row,
    scored,
    with_inputs,
    with_tables,
)
from grader.topics.sampling_fusion.shared_rows import best, filters, gumbel_of, survivors
from kernels.sampling_fusion import reference


def dropped_to(number: float):
    """Give tokens that the filters rule out this score."""

    def drawn(inputs, i, x, t, u):
        return best(np.where(filters_of(x, t, inputs, i), x / t + gumbel_of(u), number))

    return row_by_row(drawn)


def filters_of(x, t, inputs, i):
    return survivors(x, t, filters(inputs, i))


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


def k_of_none(x, t, k, p, m):
    """Top-k off keeps no token."""
    return survivors(x, t, (k, p, m)) & (k > 0)


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
    """Choose the highest id of equal scores. Without a temperature nothing is filtered."""
    s = np.where(filters_of(x, t, inputs, i), x / t + gumbel_of(u), -np.inf) if t else x
    return int(np.flatnonzero(s == s.max())[-1]) if s.max() > -np.inf else -1


one_top_k = computing(with_inputs(top_k=first_row))
EDGE = "edge = keep & (key == high2)"


MISTAKES = (
    family(
        "highest of equals",
        "of equal scores the lowest id is drawn",
        row_by_row(last_of_equals, cold=True),
        edits=(
            (
                "tl.min(tl.where((s == best) & (offs < V), offs, 2147483647), 0)",
                "tl.max(tl.where((s == best) & (offs < V), offs, -1), 0)",
            ),
        ),
    ),
    family(
        "minus zero",
        "-0.0 and 0.0 are equal, so the lower id is first; their bits are not: -(bits & 0x7FFFFFFF) turns both into 0",
        among(lambda x, t, k, p, m: survivors(as_bits_order(x), t, (k, p, m))),
        edits=(("-(bits & 0x7FFFFFFF)", "bits ^ 0x7FFFFFFF"),),
    ),
    family(
        "a number for minus infinity",
        "a token that is ruled out has a score of -inf: logits may be below any finite number that replaces it",
        *map(dropped_to, (-1e4, -1e9)),
        edits=(
            (
                'tl.log(-tl.log(tl.rand(seed, offs))), float("-inf"))',
                "tl.log(-tl.log(tl.rand(seed, offs))), -1e9)",
            ),
        ),
    ),
    family(
        "no filter",
        "the kernel drew a token that the filters had ruled out",
        scored(lambda x, t, u: x / t + gumbel_of(u)),
        edits=(
            (
                's = tl.where(keep, x / warm - tl.log(-tl.log(tl.rand(seed, offs))), float("-inf"))',
                's = tl.where(offs < V, x / warm - tl.log(-tl.log(tl.rand(seed, offs))), float("-inf"))',
            ),
        ),
    ),
    family(
        "off read as none",
        "top_k = 0 turns top-k off, but here it leaves no token: replace 0 by V before the k-th largest logit is looked for",
        among(k_of_none),
        among(k_of_none, nothing=0),
        edits=(("k = tl.where(k == 0, V, tl.minimum(k, V))", "k = tl.minimum(k, V)"),),
    ),
    GREEDY,
    NEVER_GREEDY,
    ONE_SEED,
    *(
        family(name, sentence, among(stays), among(stays, nothing=0))
        for name, (sentence, stays) in READ_OTHERWISE.items()
    ),
    *of_each_row("temperature", "top_p", "min_p"),
    ROUNDED_TO_FP16,
    edited("always greedy", ("s = tl.where(t == 0, x, s)", "s = x"), told_as="always greedy"),
    edited("never greedy", ("    s = tl.where(t == 0, x, s)\n", ""), told_as="never greedy"),
    edited(
        "weights of bf16",
        (
            "kept = tl.where(keep, weight, 0.0)",
            "kept = tl.where(keep, weight.to(tl.bfloat16).to(tl.float32), 0.0)",
        ),
    ),
    edited("a hair below min-p", ("(weight >= m)", "(weight >= 0.9999 * m)")),
    edited("no top-k", ("k = tl.where(k == 0, V, tl.minimum(k, V))", "k = V + 0 * k"), told_as="no top-k"),
    edited(
        "top-k off means one",
        ("k = tl.where(k == 0, V, tl.minimum(k, V))", "k = tl.maximum(1, tl.minimum(k, V))"),
        told_as="off read as one",
    ),
    edited("top-p never off", ("tl.where(p < 1, nucleus, keep)", "nucleus")),
    edited("no top-p", ("tl.where(p < 1, nucleus, keep)", "keep"), told_as="no top-p"),
    edited("no min-p", ("& (weight >= m)", ""), told_as="no min-p"),
    edited(
        "at most p", ("(edge & (before < p * mass))", "(edge & (before <= p * mass))"), told_as="at most p"
    ),
    edited("above min-p", ("(weight >= m)", "(weight > m)"), told_as="above min-p"),
    edited(
        "top-p of everything",
        ("mass = tl.sum(kept, 0)", "mass = tl.sum(weight, 0)"),
        told_as="top-p of everything",
    ),
    edited(
        "all ties stay",
        ("keep = above | (tie & (tl.cumsum(tie.to(tl.int32), 0) <= room))", "keep = above | tie"),
        told_as="ties all stay",
    ),
    edited(
        "no ties stay", ("keep = above | (tie & (tl.cumsum(tie.to(tl.int32), 0) <= room))", "keep = above")
    ),
    edited(
        "weights without the temperature",
        ("weight = tl.exp((x - top) / warm)", "weight = tl.exp(x - top)"),
        told_as="no temperature",
    ),
    edited(
        "crossing token dropped",
        ("- tl.where(edge, kept, 0.0)\n", "\n"),
        (
            "(edge & (before < p * mass))",
            "(edge & ((before < p * mass) | (x == top) & (tl.cumsum(edge.to(tl.int32), 0) == 1)))",
        ),
        told_as="crossing token dropped",
    ),
    edited("crossing token dropped, even the first", ("- tl.where(edge, kept, 0.0)\n", "\n")),
    edited("one too many of top-k", ("tl.minimum(k, V))", "tl.minimum(k + 1, V))")),
    edited(
        "one too many of top-p",
        (EDGE, f"high2 = tl.max(tl.where(keep & (key < high2), key, -2147483648), 0)\n    {EDGE}"),
        ("(edge & (before < p * mass))", "edge"),
    ),
    edited("min-p of the mass", ("(weight >= m)", "(weight >= m * mass)")),
    edited("min-p without the temperature", ("(weight >= m)", "(tl.exp(x - top) >= m)")),
    edited("one seed for all", ("tl.load(seed_ptr + b)", "tl.load(seed_ptr)"), told_as="one seed"),
    edited(
        "one temperature for all",
        ("tl.load(temperature_ptr + b)", "tl.load(temperature_ptr)"),
        told_as="one temperature",
    ),
    edited("one top_k for all", ("tl.load(top_k_ptr + b)", "tl.load(top_k_ptr)")),
    edited("one top_p for all", ("tl.load(top_p_ptr + b)", "tl.load(top_p_ptr)"), told_as="one top_p"),
    edited("one min_p for all", ("tl.load(min_p_ptr + b)", "tl.load(min_p_ptr)"), told_as="one min_p"),
    edited(
        "min-p before top-p",
        ("keep = keep & (offs < V)", "keep = keep & (offs < V) & (weight >= m)"),
        told_as="min-p first",
    ),
    edited(
        "min-p of the row",
        ("(weight >= m)", "(weight >= m * tl.sum(tl.where(offs < V, weight, 0.0), 0))"),
        told_as="min-p of the row",
    ),
    edited(
        "equals at the edge together",
        (
            "before = tl.sum(tl.where(key > high2, kept, 0.0), 0) + tl.cumsum(tl.where(edge, kept, 0.0), 0) - tl.where(edge, kept, 0.0)",
            "before = tl.sum(tl.where(key > high2, kept, 0.0), 0)",
        ),
        told_as="ties together",
    ),
    edited(
        "the highest ids first",
        ("tl.cumsum(tie.to(tl.int32), 0)", "tl.cumsum(tie.to(tl.int32), 0, reverse=True)"),
        (
            "tl.cumsum(tl.where(edge, kept, 0.0), 0)",
            "tl.cumsum(tl.where(edge, kept, 0.0), 0, reverse=True)",
        ),
        told_as="highest id first",
    ),
    edited(
        "no top-p from 0.999 on",
        ("(before < p * mass)", "((before < p * mass) | (p >= 0.999))"),
        (
            "tl.where(key > middle2, kept, 0.0), 0) < p * mass",
            "tl.where(key > middle2, kept, 0.0), 0) < tl.where(p >= 0.999, 2.0, p) * mass",
        ),
    ),
    edited(
        "a small top-p keeps the best alone",
        ("mass = tl.sum(kept, 0)", "mass = tl.sum(kept, 0) * tl.where(p < 0.02, 1e-6, 1.0)"),
    ),
    edited(
        "24 halvings for the k-th of wide rows",
        (
            "    for _ in range(32):\n        middle =",
            "    for _ in range(32 if BLOCK <= 1024 else 24):\n        middle =",
        ),
    ),
    edited(
        "24 halvings for top-p",
        ("    for _ in range(32):\n        middle2 =", "    for _ in range(24):\n        middle2 ="),
        ("edge = keep & (key == high2)", "edge = keep & (key <= high2) & (key >= low2)"),
    ),
    edited(
        "mass counted twice",
        (
            "mass = tl.sum(kept, 0)",
            'mass = tl.sum(kept, 0) * tl.where(k > tl.sum((x > float("-inf")).to(tl.int32), 0), 2.0, 1.0)',
        ),
        told_as="mass counted twice",
    ),
    edited(
        "read in half precision",
        (".to(tl.float32)\n    top =", ".to(tl.float16).to(tl.float32)\n    top ="),
        told_as="rounded to fp16",
    ),
    edited(
        "top_k up to 50",
        (
            "k = tl.where(k == 0, V, tl.minimum(k, V))",
            "k = tl.where(k == 0, V, tl.minimum(tl.minimum(k, 50), V))",
        ),
    ),
    edited(
        "read twice",
        (
            "    top = tl.max(x, 0)",
            '    x = tl.maximum(x, tl.load(logits_ptr + b.to(tl.int64) * stride_logitsb + offs * stride_logitsv, mask=offs < V, other=float("-inf")).to(tl.float32))\n    top = tl.max(x, 0)',
        ),
        part="traffic",
    ),
)


SHORTCUTS = {
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
