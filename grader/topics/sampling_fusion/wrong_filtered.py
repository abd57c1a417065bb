"""Draws after top-k, top-p and min-p, wrong."""

from grader.questions.tables import changed

FILTERED = "sampling_fusion.filtered_draw"
EDGE = "edge = keep & (key == high2)"

WRONG = {
    FILTERED: {
        "no filter": changed(
            (
                's = tl.where(keep, x / warm - tl.log(-tl.log(tl.rand(seed, offs))), float("-inf"))',
                's = tl.where(offs < V, x / warm - tl.log(-tl.log(tl.rand(seed, offs))), float("-inf"))',
            ),
            mistake="no filter",
        ),
        "always greedy": changed(("s = tl.where(t == 0, x, s)", "s = x"), mistake="always greedy"),
        "never greedy": changed(("    s = tl.where(t == 0, x, s)\n", ""), mistake="never greedy"),
        "highest of equals": changed(
            (
                "tl.min(tl.where((s == best) & (offs < V), offs, 2147483647), 0)",
                "tl.max(tl.where((s == best) & (offs < V), offs, -1), 0)",
            ),
            mistake="highest of equals",
        ),
        "weights of bf16": changed(
            (
                "kept = tl.where(keep, weight, 0.0)",
                "kept = tl.where(keep, weight.to(tl.bfloat16).to(tl.float32), 0.0)",
            )
        ),
        "top-p never off": changed(("tl.where(p < 1, nucleus, keep)", "nucleus")),
        "no top-k": changed(
            ("k = tl.where(k == 0, V, tl.minimum(k, V))", "k = V + 0 * k"), mistake="no top-k"
        ),
        "top-k off means one": changed(
            ("k = tl.where(k == 0, V, tl.minimum(k, V))", "k = tl.maximum(1, tl.minimum(k, V))"),
            mistake="off read as one",
        ),
        "no top-p": changed(("tl.where(p < 1, nucleus, keep)", "keep"), mistake="no top-p"),
        "no min-p": changed(("& (weight >= m)", ""), mistake="no min-p"),
        "at most p": changed(
            ("(edge & (before < p * mass))", "(edge & (before <= p * mass))"), mistake="at most p"
        ),
        "above min-p": changed(("(weight >= m)", "(weight > m)"), mistake="above min-p"),
        "minus zero": changed(("-(bits & 0x7FFFFFFF)", "bits ^ 0x7FFFFFFF"), mistake="minus zero"),
        "ruled out with -1e9": changed(
            (
                'tl.log(-tl.log(tl.rand(seed, offs))), float("-inf"))',
                "tl.log(-tl.log(tl.rand(seed, offs))), -1e9)",
            ),
            mistake="a number for minus infinity",
        ),
        "top-p of everything": changed(
            ("mass = tl.sum(kept, 0)", "mass = tl.sum(weight, 0)"), mistake="top-p of everything"
        ),
        "all ties stay": changed(
            ("keep = above | (tie & (tl.cumsum(tie.to(tl.int32), 0) <= room))", "keep = above | tie"),
            mistake="ties all stay",
        ),
        "no ties stay": changed(
            ("keep = above | (tie & (tl.cumsum(tie.to(tl.int32), 0) <= room))", "keep = above")
        ),
        "weights without the temperature": changed(
            ("weight = tl.exp((x - top) / warm)", "weight = tl.exp(x - top)"), mistake="no temperature"
        ),
        "crossing token dropped": changed(
            ("- tl.where(edge, kept, 0.0)\n", "\n"),
            (
                "(edge & (before < p * mass))",
                "(edge & ((before < p * mass) | (x == top) & (tl.cumsum(edge.to(tl.int32), 0) == 1)))",
            ),
            mistake="crossing token dropped",
        ),
        "crossing token dropped, even the first": changed(("- tl.where(edge, kept, 0.0)\n", "\n")),
        "one too many of top-k": changed(("tl.minimum(k, V))", "tl.minimum(k + 1, V))")),
        "one too many of top-p": changed(
            (EDGE, f"high2 = tl.max(tl.where(keep & (key < high2), key, -2147483648), 0)\n    {EDGE}"),
            ("(edge & (before < p * mass))", "edge"),
        ),
        "min-p of the mass": changed(("(weight >= m)", "(weight >= m * mass)")),
        "min-p without the temperature": changed(("(weight >= m)", "(tl.exp(x - top) >= m)")),
        "one seed for all": changed(("tl.load(seed_ptr + b)", "tl.load(seed_ptr)"), mistake="one seed"),
        "one temperature for all": changed(
            ("tl.load(temperature_ptr + b)", "tl.load(temperature_ptr)"), mistake="one temperature"
        ),
        "one top_k for all": changed(("tl.load(top_k_ptr + b)", "tl.load(top_k_ptr)")),
        "one top_p for all": changed(("tl.load(top_p_ptr + b)", "tl.load(top_p_ptr)"), mistake="one top_p"),
        "one min_p for all": changed(("tl.load(min_p_ptr + b)", "tl.load(min_p_ptr)"), mistake="one min_p"),
        "min-p before top-p": changed(
            ("keep = keep & (offs < V)", "keep = keep & (offs < V) & (weight >= m)"), mistake="min-p first"
        ),
        "min-p of the row": changed(
            ("(weight >= m)", "(weight >= m * tl.sum(tl.where(offs < V, weight, 0.0), 0))"),
            mistake="min-p of the row",
        ),
        "equals at the edge together": changed(
            (
                "before = tl.sum(tl.where(key > high2, kept, 0.0), 0) + tl.cumsum(tl.where(edge, kept, 0.0), 0) - tl.where(edge, kept, 0.0)",
                "before = tl.sum(tl.where(key > high2, kept, 0.0), 0)",
            ),
            mistake="ties together",
        ),
        "the highest ids first": changed(
            ("tl.cumsum(tie.to(tl.int32), 0)", "tl.cumsum(tie.to(tl.int32), 0, reverse=True)"),
            (
                "tl.cumsum(tl.where(edge, kept, 0.0), 0)",
                "tl.cumsum(tl.where(edge, kept, 0.0), 0, reverse=True)",
            ),
            mistake="highest id first",
        ),
        "mass counted twice": changed(
            (
                "mass = tl.sum(kept, 0)",
                'mass = tl.sum(kept, 0) * tl.where(k > tl.sum((x > float("-inf")).to(tl.int32), 0), 2.0, 1.0)',
            ),
            mistake="mass counted twice",
        ),
        "read in half precision": changed(
            (".to(tl.float32)\n    top =", ".to(tl.float16).to(tl.float32)\n    top ="),
            mistake="rounded to fp16",
        ),
        "top_k up to 50": changed(
            (
                "k = tl.where(k == 0, V, tl.minimum(k, V))",
                "k = tl.where(k == 0, V, tl.minimum(tl.minimum(k, 50), V))",
            )
        ),
        "read twice": changed(
            (
                "    top = tl.max(x, 0)",
                '    x = tl.maximum(x, tl.load(logits_ptr + b.to(tl.int64) * stride_logitsb + offs * stride_logitsv, mask=offs < V, other=float("-inf")).to(tl.float32))\n    top = tl.max(x, 0)',
            ),
            part="traffic",
        ),
    },
}

COLD = "at temperature 0 the score is the logit alone, so its other branch divides by what it likes"
NO_ID = "both stand for no token: no vocabulary has that many"
LAST = "behind the end of the row lie -inf and the highest ids: k counts V tokens at most, and of equals the lowest id wins"
RANGE = "one value more in an interval that no float's key lies near the ends of"
OFF = "top-p of 1 cuts what fp32 cannot tell from nothing in the sum: such a token is drawn once in 30 million times, by a uniform number whose own rounding decides"
ENDED = "after 32 halvings one value is left, and another halving leaves it"

EQUIVALENT = {
    FILTERED: {
        "left out: keep = keep & (offs < V)": LAST,
        "comparison: bits < 0 -> bits <= 0": "minus 0 is 0",
        "right side dropped: keep & (offs < V) -> keep & True": LAST,
        "comparison: offs < V -> offs <= V": LAST,
        "comparison: offs < V -> offs <= V (3)": LAST,
        "right side dropped: (s == best) & (offs < V) -> (s == best) & True": LAST,
        "plus one: 1.0 -> 2.0": COLD,
        "a little more: 1.0 -> 1.05": COLD,
        "plus one: 0 -> 1 (6)": COLD,
        "halved: 2147483647 -> 1073741823 (3)": NO_ID,
        "halved: 16 -> 8": "any block that holds the row",
        "plus one: 2147483647 -> 2147483648": RANGE,
        "plus one: 2147483647 -> 2147483648 (2)": RANGE,
        "plus one: 2147483648 -> 2147483649": RANGE,
        "plus one: 2147483648 -> 2147483649 (2)": RANGE,
        "plus one: 32 -> 33": ENDED,
        "plus one: 32 -> 33 (2)": ENDED,
        "plus one: 1 -> 2 (4)": "another middle, and still one value after 32 halvings",
        "right side dropped: middle - 1 -> middle - 0": "two values are left, of which the upper is known to be too high",
        "right side dropped: middle2 + 1 -> middle2 + 0": "two values are left, of which the lower is known to be too low",
        "comparison: tl.sum((key >= middle).to(tl.int32), 0) >= k -> tl.sum((key >= middle).to(tl.int32), 0) > k": "finds the next logit after the k-th, for whose equals no room is left",
        "comparison: tl.sum(tl.where(key > middle2, kept, 0.0), 0) < p * mass -> tl.sum(tl.where(key > middle2, kept, 0.0), 0) <= p * mass": "where the mass above is the limit exactly, before < limit refuses the edge again",
        "plus one: 0.0 -> 1.0 (2)": "only tokens at the edge are asked what lies before them",
        "comparison: p < 1 -> p <= 1": OFF,
        "plus one: 1 -> 2 (3)": OFF,
    },
}
