"""Draws from logits, wrong; those with filters stand in wrong_filtered.py and wrong_grouped.py."""

from grader.questions.tables import changed
from grader.topics.sampling_fusion import wrong_filtered, wrong_grouped

DRAW = "sampling_fusion.draw"
MASKED = "sampling_fusion.masked_draw"
GREEDY = "s = tl.where(t == 0, x, x / tl.where(t == 0, 1.0, t) + noise)"
INVERSE = """w = tl.where(offs < V, tl.exp((x - tl.max(x, 0)) / tl.where(t == 0, 1.0, t)), 0.0)
        before = tl.cumsum(w, 0) - w
        hit = (before <= tl.rand(seed, offs * 0) * tl.sum(w, 0)) & (w > 0)
        s = tl.where(t == 0, x, tl.where(hit, offs.to(tl.float32), float("-inf")))"""
PENALTIES = "tl.where(count > 0, tl.where(x > 0, x / r, x * r) - f * count - p, x)"
MASKED_SCORE = "s = tl.where(t == 0, x, x / tl.where(t == 0, 1.0, t) - tl.log(-tl.log(tl.rand(seed, offs))))"
WALKS_ALONE = """@triton.jit
def draw(logits_ptr, temperature_ptr, seed_ptr, token_ptr, B, V, stride_logitsb, stride_logitsv, BLOCK: tl.constexpr):
    for b in range(0, B):
        one_row(b, logits_ptr, temperature_ptr, seed_ptr, token_ptr, V, stride_logitsb, stride_logitsv, BLOCK)


"""

WRONG = {
    DRAW: {
        "always greedy": changed((GREEDY, "s = x"), mistake="always greedy"),
        "never greedy": changed((GREEDY, "s = x / tl.where(t == 0, 1.0, t) + noise"), mistake="never greedy"),
        "small temperatures greedy": changed(
            (GREEDY, GREEDY.replace("t == 0, x,", "t < 0.05, x,")), mistake="small temperatures greedy"
        ),
        "a millionth added to u": changed(
            ("tl.log(tl.rand(seed, offs))", "tl.log(tl.minimum(tl.rand(seed, offs) + 1e-6, 0.9999999))")
        ),
        "noise divided too": changed(
            (GREEDY, "s = tl.where(t == 0, x, (x + noise) / tl.where(t == 0, 1.0, t))"),
            mistake="noise scaled",
        ),
        "one seed for all rows": changed(("tl.load(seed_ptr + b)", "tl.load(seed_ptr)"), mistake="one seed"),
        "one temperature for all rows": changed(
            ("tl.load(temperature_ptr + b)", "tl.load(temperature_ptr)"), mistake="one temperature"
        ),
        "noise by lane": changed(("tl.rand(seed, offs)", "tl.rand(seed, lanes)"), mistake="noise by lane"),
        "another seed in each block": changed(
            ("tl.rand(seed, offs)", "tl.rand(seed + start, offs)"), mistake="seed by block"
        ),
        "sign of the noise": changed(("noise = -tl.log(", "noise = tl.log("), mistake="sign of the noise"),
        "1 - u for u": changed(("tl.rand(seed, offs)", "(1 - tl.rand(seed, offs))"), mistake="another noise"),
        "by inverse CDF": changed((GREEDY, INVERSE), mistake="inverse CDF"),
        "temperature off by a hundredth": changed(
            ("x / tl.where(t == 0, 1.0, t)", "x / tl.where(t == 0, 1.0, 1.01 * t)")
        ),
        "noise of twelve bits": changed(
            ("tl.rand(seed, offs)", "((tl.floor(tl.rand(seed, offs) * 4096) + 0.5) / 4096)")
        ),
        "noise in bf16": changed(
            (
                "tl.log(tl.rand(seed, offs)))\n",
                "tl.log(tl.rand(seed, offs))).to(tl.bfloat16).to(tl.float32)\n",
            )
        ),
        "neighbouring seeds share their noise": changed(
            ("tl.load(seed_ptr + b)", "tl.load(seed_ptr + b) // 2")
        ),
        "a best score from -1e9": changed(
            ('best = tl.full((BLOCK,), float("-inf")', "best = tl.full((BLOCK,), -1e9"),
            ('tl.where(top == float("-inf"), -1, chosen)', "tl.where(top == -1e9, -1, chosen)"),
            mistake="a number for minus infinity",
        ),
        "a row of -inf gives a token": changed(
            ('tl.where(top == float("-inf"), -1, chosen)', 'tl.where(top == float("-inf"), 0, chosen)'),
            mistake="banned row drawn",
        ),
        "the highest id of equals": changed(
            (
                "chosen = tl.min(tl.where((best == top) & (who >= 0), who, 2147483647), 0)",
                "chosen = tl.max(tl.where(best == top, who, -1), 0)",
            ),
            mistake="highest of the lanes",
        ),
        "lane for token": changed(
            ("who = tl.where(better, offs, who)", "who = tl.where(better, lanes, who)")
        ),
        "last block alone": changed(("better = (s > best) & (offs < V)", "better = offs < V")),
        "tail left out": changed(("range(0, V, BLOCK)", "range(0, V // BLOCK * BLOCK, BLOCK)")),
        "read in half precision": changed(
            (".to(tl.float32)\n        noise", ".to(tl.float16).to(tl.float32)\n        noise"),
            mistake="rounded to fp16",
        ),
        "temperature multiplied": changed(("x / tl.where(t == 0, 1.0, t)", "x * tl.where(t == 0, 1.0, t)")),
        "read twice": changed(
            (
                "        noise =",
                '        x = tl.maximum(x, tl.load(row + offs * stride_logitsv, mask=offs < V, other=float("-inf")).to(tl.float32))\n        noise =',
            ),
            part="traffic",
        ),
        "the highest of all equals": changed(
            ("(s > best)", "(s >= best)"),
            (
                "chosen = tl.min(tl.where((best == top) & (who >= 0), who, 2147483647), 0)",
                "chosen = tl.max(tl.where(best == top, who, -1), 0)",
            ),
            mistake="highest of equals",
        ),
        "the lowest lane of equals": changed(
            (
                "chosen = tl.min(tl.where((best == top) & (who >= 0), who, 2147483647), 0)",
                "lane = tl.min(tl.where(best == top, lanes, BLOCK), 0)\n    chosen = tl.sum(tl.where(lanes == lane, who, 0), 0)",
            ),
            mistake="lowest lane",
        ),
        "no temperature": changed(("x / tl.where(t == 0, 1.0, t)", "x"), mistake="noise scaled"),
        "logarithms to base two": changed(
            ("noise = -tl.log(-tl.log(", "noise = -tl.log2(-tl.log2("), mistake="base two"
        ),
        "one logarithm": changed(
            ("noise = -tl.log(-tl.log(tl.rand(seed, offs)))", "noise = -tl.log(tl.rand(seed, offs))"),
            mistake="one logarithm",
        ),
        "u never beyond 0.999": changed(("tl.rand(seed, offs)", "tl.minimum(tl.rand(seed, offs), 0.999)")),
        "8192 tokens at most": changed(("range(0, V, BLOCK)", "range(0, tl.minimum(V, 8192), BLOCK)")),
        "written by two programs in two widths": changed(
            ("    b = tl.program_id(0)\n", "    b = tl.program_id(0) // 2\n"),
            (
                '    tl.store(token_ptr + b, tl.where(top == float("-inf"), -1, chosen))',
                '    found = tl.where(top == float("-inf"), -1, chosen)\n    halves = token_ptr.to(tl.pointer_type(tl.int16)) + 2 * b\n    if tl.program_id(0) % 2 == 0:\n        tl.store(token_ptr + b, found * 0)\n    else:\n        tl.store(halves, found.to(tl.int16))\n        tl.store(halves + 1, (found >> 16).to(tl.int16))',
            ),
            ('"grid": (p.B,)', '"grid": (2 * p.B,)'),
        ),
        "scores through scratch": changed(
            ("seed_ptr, token_ptr, V", "seed_ptr, token_ptr, kept_ptr, V"),
            (
                "        better =",
                "        tl.store(kept_ptr + b * V + offs, s, mask=offs < V)\n        better =",
            ),
            ('return {"steps"', 'return {"scratch": {"kept": ((p.B, p.V), "fp32", 0)}, "steps"'),
            part="traffic",
        ),
        "one program for all rows": changed(
            ("def draw(logits_ptr", "def one_row(b, logits_ptr"),
            ("    b = tl.program_id(0)\n", ""),
            ("b.to(tl.int64)", "b"),
            ("def launch(p):", WALKS_ALONE + "def launch(p):"),
            ('"grid": (p.B,)', '"grid": (1,)'),
            part="speed",
        ),
        "noise a hundred times": changed(
            (
                "        s = tl.where(t == 0",
                "        for _ in range(100):\n            noise = noise + 0.0 * tl.log(2.0 - noise * 0.0)\n        s = tl.where(t == 0",
            ),
            part="speed",
        ),
    },
    MASKED: {
        "counted in eight bits": changed(
            (PENALTIES, PENALTIES.replace("f * count", "f * count.to(tl.int32).to(tl.int8).to(tl.float32)")),
            mistake="counted in eight bits",
        ),
        "penalties rounded to bf16": changed(
            (
                PENALTIES,
                "tl.where(count > 0, (tl.where(x > 0, x / r, x * r) - f * count - p).to(logits_ptr.dtype.element_ty).to(tl.float32), x)",
            ),
            mistake="penalties rounded to bf16",
        ),
        "no penalties": changed((f"x = {PENALTIES}", "x = x"), mistake="no penalties"),
        "no mask": changed(
            ('x = tl.where(((word >> (offs % 32)) & 1) != 0, x, float("-inf"))', "x = x"), mistake="no mask"
        ),
        "a best score from -1e9": changed(
            ('best = tl.full((BLOCK,), float("-inf")', "best = tl.full((BLOCK,), -1e9"),
            ('tl.where(top == float("-inf"), -1, chosen)', "tl.where(top == -1e9, -1, chosen)"),
            mistake="a number for minus infinity",
        ),
        "banned tokens low, not gone": changed(('!= 0, x, float("-inf"))', "!= 0, x, -30.0)")),
        "always greedy": changed((MASKED_SCORE, "s = x"), mistake="always greedy"),
        "bits from the other end": changed(
            ("word >> (offs % 32)", "word >> (31 - offs % 32)"), mistake="bits from the other end"
        ),
        "the last bit of a word is a sign": changed(
            ("((word >> (offs % 32)) & 1) != 0", "(word & (1 << (offs % 32))) > 0"),
            mistake="the last bit of a word",
        ),
        "the first word for all": changed(("+ offs // 32 * stride_allowedw", "")),
        "always divided": changed(("tl.where(x > 0, x / r, x * r)", "x / r"), mistake="always divides"),
        "presence by count": changed(
            ("- f * count - p", "- f * count - p * count"), mistake="presence by count"
        ),
        "frequency once": changed(("- f * count - p", "- f - p"), mistake="frequency once"),
        "penalties on every token": changed((PENALTIES, "tl.where(x > 0, x / r, x * r) - f * count - p")),
        "subtracted first": changed(
            (
                "tl.where(x > 0, x / r, x * r) - f * count - p",
                "tl.where(x - f * count - p > 0, (x - f * count - p) / r, (x - f * count - p) * r)",
            ),
            mistake="subtracted first",
        ),
        "never greedy": changed(
            (MASKED_SCORE, MASKED_SCORE.replace("tl.where(t == 0, x, ", "").removesuffix(")")),
            mistake="never greedy",
        ),
        "last entry of the history left out": changed(("range(0, L)", "range(0, L - 1)")),
        "empty places count as token 0": changed(
            (
                "tl.load(history_ptr + b * stride_historyb + l * stride_historyl))",
                "tl.maximum(tl.load(history_ptr + b * stride_historyb + l * stride_historyl), 0))",
            ),
            mistake="empty places counted",
        ),
        "first entry of the history alone": changed(("range(0, L)", "range(0, 1)")),
        "penalties after the temperature": changed(
            (f"        x = {PENALTIES}\n", ""),
            (
                MASKED_SCORE,
                MASKED_SCORE
                + "\n        s = tl.where(count > 0, tl.where(s > 0, s / r, s * r) - f * count - p, s)",
            ),
            mistake="penalties too late",
        ),
        "penalties between the temperature and the noise": changed(
            (
                f"x = {PENALTIES}",
                f"x = tl.where(t == 0, x, x / tl.where(t == 0, 1.0, t))\n        x = {PENALTIES}",
            ),
            (MASKED_SCORE, MASKED_SCORE.replace("x / tl.where(t == 0, 1.0, t)", "x")),
            mistake="penalties too late",
        ),
        "one seed for all": changed(("tl.load(seed_ptr + b)", "tl.load(seed_ptr)"), mistake="one seed"),
        "one temperature for all": changed(
            ("tl.load(temperature_ptr + b)", "tl.load(temperature_ptr)"), mistake="one temperature"
        ),
        "one repetition for all": changed(
            ("tl.load(repetition_ptr + b)", "tl.load(repetition_ptr)"), mistake="one repetition"
        ),
        "one frequency for all": changed(
            ("tl.load(frequency_ptr + b)", "tl.load(frequency_ptr)"), mistake="one frequency"
        ),
        "one presence for all": changed(
            ("tl.load(presence_ptr + b)", "tl.load(presence_ptr)"), mistake="one presence"
        ),
        "the highest of all equals": changed(
            ("(s > best)", "(s >= best)"),
            (
                "chosen = tl.min(tl.where((best == top) & (who >= 0), who, 2147483647), 0)",
                "chosen = tl.max(tl.where(best == top, who, -1), 0)",
            ),
            mistake="highest of equals",
        ),
        "a banned row gives a token": changed(
            ('tl.where(top == float("-inf"), -1, chosen)', 'tl.where(top == float("-inf"), 0, chosen)'),
            mistake="banned row drawn",
        ),
        "repetition each time": changed(
            (
                "tl.where(x > 0, x / r, x * r)",
                "tl.where(x > 0, x / tl.exp(count * tl.log(r)), x * tl.exp(count * tl.log(r)))",
            ),
            mistake="repetition each time",
        ),
        "read in half precision": changed(
            (".to(tl.float32)\n        word", ".to(tl.float16).to(tl.float32)\n        word"),
            mistake="rounded to fp16",
        ),
        "40 places of history": changed(("range(0, L)", "range(0, tl.minimum(L, 40))")),
        "the mask's inner stride taken for 1": changed(("offs // 32 * stride_allowedw", "offs // 32")),
        "the history's inner stride taken for 1": changed(("l * stride_historyl", "l")),
        "read twice": changed(
            (
                "        word =",
                '        x = tl.maximum(x, tl.load(row + offs * stride_logitsv, mask=inside, other=float("-inf")).to(tl.float32))\n        word =',
            ),
            part="traffic",
        ),
    },
    **wrong_filtered.WRONG,
    **wrong_grouped.WRONG,
}

COLD = "at temperature 0 the score is the logit alone, so its other branch divides by what it likes"
LANE = "a lane that found nothing has -inf, and where all have the token is -1 in any case"
NO_ID = "both stand for no token: no vocabulary has that many"

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
        "no other: tl.load(allowed_ptr + b * stride_allowedb + offs // 32 * stride_allowedw, mask=inside, other=0) -> tl.load(allowed_ptr + b * stride_allowedb + offs //": "a lane behind the end is never better, whatever its bit",
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
    **wrong_filtered.EQUIVALENT,
    **wrong_grouped.EQUIVALENT,
}
