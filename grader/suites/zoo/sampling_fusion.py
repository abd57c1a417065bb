"""Draws from logits, wrong."""

DRAW, MASKED, FILTERED = (
    "sampling_fusion.draw",
    "sampling_fusion.masked_draw",
    "sampling_fusion.filtered_draw",
)
GREEDY = "s = tl.where(t == 0, x, x / tl.where(t == 0, 1.0, t) + noise)"
PENALTIES = "tl.where(count > 0, tl.where(x > 0, x / r, x * r) - f * count - p, x)"
MASKED_SCORE = "s = tl.where(t == 0, x, x / tl.where(t == 0, 1.0, t) - tl.log(-tl.log(tl.rand(seed, offs))))"

WRONG = {
    DRAW: {
        "always greedy": ("values", [(GREEDY, "s = x")], "always greedy"),
        "never greedy": ("values", [(GREEDY, "s = x / tl.where(t == 0, 1.0, t) + noise")], "never greedy"),
        "noise divided too": ("values", [(GREEDY, "s = tl.where(t == 0, x, (x + noise) / tl.where(t == 0, 1.0, t))")], "noise scaled"),
        "one seed for all rows": ("values", [("tl.load(seed_ptr + b)", "tl.load(seed_ptr)")], "one seed"),
        "one temperature for all rows": ("values", [("tl.load(temperature_ptr + b)", "tl.load(temperature_ptr)")], ""),
        "noise by lane": ("values", [("tl.rand(seed, offs)", "tl.rand(seed, lanes)")], ""),
        "sign of the noise": ("values", [("noise = -tl.log(", "noise = tl.log(")], ""),
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
        "always divided": ("values", [("tl.where(x > 0, x / r, x * r)", "x / r")], ""),
        "presence by count": ("values", [("- f * count - p", "- f * count - p * count")], ""),
        "frequency once": ("values", [("- f * count - p", "- f - p")], ""),
        "penalties on every token": ("values", [(PENALTIES, "tl.where(x > 0, x / r, x * r) - f * count - p")], ""),
        "subtracted first": ("values", [("tl.where(x > 0, x / r, x * r) - f * count - p", "tl.where(x - f * count - p > 0, (x - f * count - p) / r, (x - f * count - p) * r)")], ""),
        "first entry of the history alone": ("values", [("range(0, L)", "range(0, 1)")], ""),
        "penalties after the temperature": ("values", [(f"        x = {PENALTIES}\n", ""), (MASKED_SCORE, MASKED_SCORE + "\n        s = tl.where(count > 0, tl.where(s > 0, s / r, s * r) - f * count - p, s)")], ""),
    },
    FILTERED: {
        "no filter": ("values", [('s = tl.where(keep, x / warm - tl.log(-tl.log(tl.rand(seed, offs))), float("-inf"))', "s = tl.where(offs < V, x / warm - tl.log(-tl.log(tl.rand(seed, offs))), float(\"-inf\"))")], "no filter"),
        "always greedy": ("values", [("s = tl.where(t == 0, x, s)", "s = x")], "always greedy"),
        "never greedy": ("values", [("    s = tl.where(t == 0, x, s)\n", "")], ""),
        "no top-k": ("values", [("k = tl.where(k == 0, V, tl.minimum(k, V))", "k = V + 0 * k")], ""),
        "top-k off means one": ("values", [("k = tl.where(k == 0, V, tl.minimum(k, V))", "k = tl.maximum(1, tl.minimum(k, V))")], ""),
        "no top-p": ("values", [("tl.where(p < 1, nucleus, keep)", "keep")], ""),
        "no min-p": ("values", [("& (weight >= m)", "")], ""),
        "top-p of everything": ("values", [("mass = tl.sum(kept, 0)", "mass = tl.sum(weight, 0)")], ""),
        "all ties stay": ("values", [("keep = above | (tie & (tl.cumsum(tie.to(tl.int32), 0) <= room))", "keep = above | tie")], ""),
        "no ties stay": ("values", [("keep = above | (tie & (tl.cumsum(tie.to(tl.int32), 0) <= room))", "keep = above")], ""),
        "weights without the temperature": ("values", [("weight = tl.exp((x - top) / warm)", "weight = tl.exp(x - top)")], ""),
        "crossing token dropped": ("values", [("- tl.where(edge, kept, 0.0)\n", "\n")], ""),
    },
}  # fmt: skip

EQUIVALENT = {DRAW: {}, MASKED: {}, FILTERED: {}}
