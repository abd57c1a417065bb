"""Draws from logits, wrong."""

DRAW, MASKED, FILTERED = (
    "sampling_fusion.draw",
    "sampling_fusion.masked_draw",
    "sampling_fusion.filtered_draw",
)
GREEDY = "s = tl.where(t == 0, x, x / tl.where(t == 0, 1.0, t) + noise)"
INVERSE = """w = tl.where(offs < V, tl.exp((x - tl.max(x, 0)) / tl.where(t == 0, 1.0, t)), 0.0)
        before = tl.cumsum(w, 0) - w
        hit = (before <= tl.rand(seed, offs * 0) * tl.sum(w, 0)) & (w > 0)
        s = tl.where(t == 0, x, tl.where(hit, offs.to(tl.float32), float("-inf")))"""
EDGE = "edge = keep & (key == high2)"
PENALTIES = "tl.where(count > 0, tl.where(x > 0, x / r, x * r) - f * count - p, x)"
MASKED_SCORE = "s = tl.where(t == 0, x, x / tl.where(t == 0, 1.0, t) - tl.log(-tl.log(tl.rand(seed, offs))))"

WRONG = {
    DRAW: {
        "always greedy": ("values", [(GREEDY, "s = x")], "always greedy"),
        "never greedy": ("values", [(GREEDY, "s = x / tl.where(t == 0, 1.0, t) + noise")], "never greedy"),
        "noise divided too": ("values", [(GREEDY, "s = tl.where(t == 0, x, (x + noise) / tl.where(t == 0, 1.0, t))")], "noise scaled"),
        "one seed for all rows": ("values", [("tl.load(seed_ptr + b)", "tl.load(seed_ptr)")], "one seed"),
        "one temperature for all rows": ("values", [("tl.load(temperature_ptr + b)", "tl.load(temperature_ptr)")], "one temperature"),
        "noise by lane": ("values", [("tl.rand(seed, offs)", "tl.rand(seed, lanes)")], "noise by lane"),
        "sign of the noise": ("values", [("noise = -tl.log(", "noise = tl.log(")], "sign of the noise"),
        "1 - u for u": ("values", [("tl.rand(seed, offs)", "(1 - tl.rand(seed, offs))")], "another noise"),
        "by inverse CDF": ("values", [(GREEDY, INVERSE)], "inverse CDF"),
        "temperature off by a hundredth": ("values", [("x / tl.where(t == 0, 1.0, t)", "x / tl.where(t == 0, 1.0, 1.01 * t)")], ""),
        "noise of twelve bits": ("values", [("tl.rand(seed, offs)", "((tl.floor(tl.rand(seed, offs) * 4096) + 0.5) / 4096)")], ""),
        "noise in bf16": ("values", [("tl.log(tl.rand(seed, offs)))\n", "tl.log(tl.rand(seed, offs))).to(tl.bfloat16).to(tl.float32)\n")], ""),
        "neighbouring seeds share their noise": ("values", [("tl.load(seed_ptr + b)", "tl.load(seed_ptr + b) // 2")], ""),
        "a row of -inf gives a token": ("values", [('tl.where(top == float("-inf"), -1, chosen)', "tl.where(top == float(\"-inf\"), 0, chosen)")], ""),
        "the highest id of equals": ("values", [("chosen = tl.min(tl.where((best == top) & (who >= 0), who, 2147483647), 0)", "chosen = tl.max(tl.where(best == top, who, -1), 0)")], ""),
        "lane for token": ("values", [("who = tl.where(better, offs, who)", "who = tl.where(better, lanes, who)")], ""),
        "last block alone": ("values", [("better = (s > best) & (offs < V)", "better = offs < V")], ""),
        "tail left out": ("values", [("range(0, V, BLOCK)", "range(0, V // BLOCK * BLOCK, BLOCK)")], ""),
        "read in half precision": ("values", [(".to(tl.float32)\n        noise", ".to(tl.float16).to(tl.float32)\n        noise")], ""),
        "temperature multiplied": ("values", [("x / tl.where(t == 0, 1.0, t)", "x * tl.where(t == 0, 1.0, t)")], ""),
        "read twice": ("traffic", [("        noise =", "        x = tl.maximum(x, tl.load(row + offs * stride_logitsv, mask=offs < V, other=float(\"-inf\")).to(tl.float32))\n        noise =")], ""),
    },
    MASKED: {
        "no penalties": ("values", [(f"x = {PENALTIES}", "x = x")], "no penalties"),
        "no mask": ("values", [('x = tl.where(((word >> (offs % 32)) & 1) != 0, x, float("-inf"))', "x = x")], ""),
        "banned tokens low, not gone": ("values", [('!= 0, x, float("-inf"))', "!= 0, x, -30.0)")], "banned tokens drawn"),
        "always greedy": ("values", [(MASKED_SCORE, "s = x")], "always greedy"),
        "bits from the other end": ("values", [("word >> (offs % 32)", "word >> (31 - offs % 32)")], ""),
        "the first word for all": ("values", [("+ offs // 32", "")], ""),
        "always divided": ("values", [("tl.where(x > 0, x / r, x * r)", "x / r")], "always divides"),
        "presence by count": ("values", [("- f * count - p", "- f * count - p * count")], "presence by count"),
        "frequency once": ("values", [("- f * count - p", "- f - p")], ""),
        "penalties on every token": ("values", [(PENALTIES, "tl.where(x > 0, x / r, x * r) - f * count - p")], ""),
        "subtracted first": ("values", [("tl.where(x > 0, x / r, x * r) - f * count - p", "tl.where(x - f * count - p > 0, (x - f * count - p) / r, (x - f * count - p) * r)")], "subtracted first"),
        "never greedy": ("values", [(MASKED_SCORE, MASKED_SCORE.replace("tl.where(t == 0, x, ", "").removesuffix(")"))], "never greedy"),
        "last entry of the history left out": ("values", [("range(0, L)", "range(0, L - 1)")], ""),
        "empty places count as token 0": ("values", [("tl.load(history_ptr + b * stride_historyb + l))", "tl.maximum(tl.load(history_ptr + b * stride_historyb + l), 0))")], ""),
        "first entry of the history alone": ("values", [("range(0, L)", "range(0, 1)")], ""),
        "penalties after the temperature": ("values", [(f"        x = {PENALTIES}\n", ""), (MASKED_SCORE, MASKED_SCORE + "\n        s = tl.where(count > 0, tl.where(s > 0, s / r, s * r) - f * count - p, s)")], ""),
    },
    FILTERED: {
        "no filter": ("values", [('s = tl.where(keep, x / warm - tl.log(-tl.log(tl.rand(seed, offs))), float("-inf"))', "s = tl.where(offs < V, x / warm - tl.log(-tl.log(tl.rand(seed, offs))), float(\"-inf\"))")], "no filter"),
        "always greedy": ("values", [("s = tl.where(t == 0, x, s)", "s = x")], "always greedy"),
        "never greedy": ("values", [("    s = tl.where(t == 0, x, s)\n", "")], "never greedy"),
        "no top-k": ("values", [("k = tl.where(k == 0, V, tl.minimum(k, V))", "k = V + 0 * k")], ""),
        "top-k off means one": ("values", [("k = tl.where(k == 0, V, tl.minimum(k, V))", "k = tl.maximum(1, tl.minimum(k, V))")], ""),
        "no top-p": ("values", [("tl.where(p < 1, nucleus, keep)", "keep")], ""),
        "no min-p": ("values", [("& (weight >= m)", "")], ""),
        "top-p of everything": ("values", [("mass = tl.sum(kept, 0)", "mass = tl.sum(weight, 0)")], "top-p of everything"),
        "all ties stay": ("values", [("keep = above | (tie & (tl.cumsum(tie.to(tl.int32), 0) <= room))", "keep = above | tie")], ""),
        "no ties stay": ("values", [("keep = above | (tie & (tl.cumsum(tie.to(tl.int32), 0) <= room))", "keep = above")], ""),
        "weights without the temperature": ("values", [("weight = tl.exp((x - top) / warm)", "weight = tl.exp(x - top)")], "no temperature"),
        "crossing token dropped": ("values", [("- tl.where(edge, kept, 0.0)\n", "\n"), ("(edge & (before < p * mass))", "(edge & ((before < p * mass) | (x == top) & (tl.cumsum(edge.to(tl.int32), 0) == 1)))")], "crossing token dropped"),
        "crossing token dropped, even the first": ("values", [("- tl.where(edge, kept, 0.0)\n", "\n")], ""),
        "one too many of top-k": ("values", [("tl.minimum(k, V))", "tl.minimum(k + 1, V))")], ""),
        "one too many of top-p": ("values", [(EDGE, f"high2 = tl.max(tl.where(keep & (key < high2), key, -2147483648), 0)\n    {EDGE}"), ("(edge & (before < p * mass))", "edge")], ""),
        "min-p of the mass": ("values", [("(weight >= m)", "(weight >= m * mass)")], ""),
        "min-p without the temperature": ("values", [("(weight >= m)", "(tl.exp(x - top) >= m)")], ""),
    },
}  # fmt: skip

COLD = "at temperature 0 the score is the logit alone, so its other branch divides by what it likes"
LANE = "a lane that found nothing has -inf, and where all have the token is -1 in any case"
NO_ID = "both stand for no token: no vocabulary has that many"
LAST = "behind the end of the row lie -inf and the highest ids: k counts V tokens at most, and of equals the lowest id wins"
RANGE = "one value more in an interval that no float's key lies near the ends of"
ENDED = "after 32 halvings one value is left, and another halving leaves it"

EQUIVALENT = {
    DRAW: {
        "right side dropped: (s > best) & (offs < V) -> (s > best) & True": "what lies behind the end is -inf, which is never better",
        "comparison: offs < V -> offs <= V": "what lies behind the end is -inf, which is never better",
        "no other: tl.load(row + offs * stride_logitsv, mask=offs < V, other=float('-inf')) -> tl.load(row + offs * stride_logitsv, mask=offs < V)": "a lane behind the end is asked for offs < V before it can be better",
        "halved: 1024 -> 512": "another block draws the same token",
        "plus one: 1 -> 2": LANE,
        "right side dropped: (best == top) & (who >= 0) -> (best == top) & True": LANE,
        "halved: 2147483647 -> 1073741823": NO_ID,
        "plus one: 1.0 -> 2.0": COLD,
        "a little more: 1.0 -> 1.05": COLD,
        "plus one: 0 -> 1 (8)": COLD,
    },
    MASKED: {
        "right side dropped: (s > best) & inside -> (s > best) & True": "what lies behind the end is -inf, which is never better",
        "no other: tl.load(row + offs * stride_logitsv, mask=inside, other=float('-inf')) -> tl.load(row + offs * stride_logitsv, mask=inside)": "a lane behind the end is asked whether it is inside before it can be better",
        "no other: tl.load(allowed_ptr + b * stride_allowedb + offs // 32, mask=inside, other=0) -> tl.load(allowed_ptr + b * stride_allowedb + offs // 32, mask=inside)": "a lane behind the end is never better, whatever its bit",
        "plus one: 0 -> 1 (7)": "a lane behind the end is never better, whatever its bit",
        "right side dropped: word >> offs % 32 & 1 -> word >> offs % 32 & True": "True is 1, the one bit that is looked at",
        "function: tl.float32 -> tl.float16 (4)": "an entry of the history counts 0 or 1, and is added to a count in fp32",
        "comparison: x > 0 -> x >= 0": "0 divided and 0 multiplied are 0",
        "halved: 1024 -> 512": "another block draws the same token",
        "plus one: 1 -> 2": LANE,
        "right side dropped: (best == top) & (who >= 0) -> (best == top) & True": LANE,
        "halved: 2147483647 -> 1073741823": NO_ID,
        "plus one: 1.0 -> 2.0": COLD,
        "a little more: 1.0 -> 1.05": COLD,
        "plus one: 0 -> 1 (13)": COLD,
    },
    FILTERED: {
        "left out: keep = keep & (offs < V)": LAST,
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
        "comparison: before < p * mass -> before <= p * mass": "equal only where rounding decides, and there either is right",
        "comparison: weight >= m -> weight > m": "equal only where rounding decides, since min-p is below 1; -inf is never drawn",
        "plus one: 0.0 -> 1.0 (2)": "only tokens at the edge are asked what lies before them",
        "comparison: p < 1 -> p <= 1": "before < mass is true of every weight that fp32 can tell from nothing",
        "plus one: 1 -> 2 (3)": "before < mass is true of every weight that fp32 can tell from nothing",
    },
}  # fmt: skip
