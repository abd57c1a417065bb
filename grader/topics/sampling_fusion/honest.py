"""Draws from logits, right in other ways."""

DRAW, MASKED, FILTERED = "sampling_fusion.draw", "sampling_fusion.masked_draw", "sampling_fusion.filtered_draw"
GROUPED = "sampling_fusion.grouped_draw"
LOOP = "    for start in range(0, V, BLOCK):"
NOISE = "noise = -tl.log(-tl.log(tl.rand(seed, offs)))"
BETTER = "who = tl.where(better, offs, who)\n"
COUNT = "        for l in range(0, L):\n            count += (offs == tl.load(history_ptr + b * stride_historyb + l * stride_historyl)).to(tl.float32)\n"

FORMS = {
    DRAW: {
        "two launches": ((), "draw_two_launches"),
        "pairs of score and token, a chunk at a time": ((), "draw_by_pairs"),
        "persistent programs, helper functions": ((), "draw_persistent"),
        "four programs a row, one after another by a lock": ((), "draw_with_a_lock"),
        "blocks of 128": ((), [("min(1024, triton.next_power_of_2(p.V))", "min(128, triton.next_power_of_2(p.V))")]),
        "from the last block to the first": ((), [(LOOP, "    for back in range(0, V, BLOCK):\n        start = (tl.cdiv(V, BLOCK) - 1) * BLOCK - back"), ("(s > best)", "(s >= best)")]),
        "a while loop": ((), [(LOOP, "    start = 0\n    while start < V:"), ("        " + BETTER, "        " + BETTER + "        start += BLOCK\n")]),
        "a reciprocal temperature": ((), [("x / tl.where(t == 0, 1.0, t) + noise", "x * (1.0 / tl.where(t == 0, 1.0, t)) + noise")]),
        "logarithms to base two": ((), [(NOISE, "noise = -0.6931471805599453 * tl.log2(-0.6931471805599453 * tl.log2(tl.rand(seed, offs)))")]),
        "two branches": ((), [("s = tl.where(t == 0, x, x / tl.where(t == 0, 1.0, t) + noise)", "s = x\n        if t > 0:\n            s = x / t + noise")]),
    },
    MASKED: {
        "a word of the mask at a time, helper functions": ((), "masked_helpers"),
        "blocks of 64": ((), [("min(1024, triton.next_power_of_2(p.V))", "min(64, triton.next_power_of_2(p.V))")]),
        "the history in one block": ((), [(COUNT, "        past = tl.arange(0, PAST)\n        old = tl.load(history_ptr + b * stride_historyb + past * stride_historyl, mask=past < L, other=-1)\n        count = tl.sum((offs[:, None] == old[None, :]).to(tl.float32), 1)\n"), ("BLOCK: tl.constexpr", "BLOCK: tl.constexpr, PAST: tl.constexpr"), ('"BLOCK": block', '"BLOCK": block, "PAST": max(2, triton.next_power_of_2(p.L))'), ("min(1024,", "min(256,")]),
        "bits by masks": ((), [("((word >> (offs % 32)) & 1) != 0", "(word & (1 << (offs % 32))) != 0")]),
        "a reciprocal temperature": ((), [("x / tl.where(t == 0, 1.0, t) - tl.log", "x * (1.0 / tl.where(t == 0, 1.0, t)) - tl.log")]),
        "two branches": ((), [("s = tl.where(t == 0, x, x / tl.where(t == 0, 1.0, t) - tl.log(-tl.log(tl.rand(seed, offs))))", "s = x\n        if t != 0:\n            s = x / t - tl.log(-tl.log(tl.rand(seed, offs)))")]),
        "banned tokens last": ((), [('        x = tl.where(((word >> (offs % 32)) & 1) != 0, x, float("-inf"))\n', ""), ("        better =", '        s = tl.where(((word >> (offs % 32)) & 1) != 0, s, float("-inf"))\n        better =')]),
        "a while loop": ((), [(LOOP, "    start = 0\n    while start < V:"), ("        " + BETTER, "        " + BETTER + "        start += BLOCK\n")]),
    },
    FILTERED: {
        "sorted after all": ((), "filtered_sorted"),
        "by halving real numbers": ((), "filtered_by_halves"),
        "sixty-four halvings": ((), [("range(32)", "range(64)")]),
        "eight warps": ((), [('"num_warps": 4', '"num_warps": 8')]),
        "a wider block": ((), [("max(16, triton.next_power_of_2(p.V))", "max(64, 2 * triton.next_power_of_2(p.V))")]),
        "base two": ((), [("weight = tl.exp((x - top) / warm)", "weight = tl.exp2((x - top) / warm * 1.4426950408889634)")]),
        "ties by a count from the end": ((), [("(tl.cumsum(tie.to(tl.int32), 0) <= room)", "(tl.sum(tie.to(tl.int32), 0) - tl.cumsum(tie.to(tl.int32), 0, reverse=True) < room)")]),
    },
    GROUPED: {
        "sixty-four halvings": ((), [("range(32)", "range(64)")]),
        "one program a row for the maxima": ((), [('"TILE": 64', '"TILE": triton.next_power_of_2(groups)'), ("triton.cdiv(groups, 64), p.B", "1, p.B")]),
        "sixteen groups a program": ((), [('"TILE": 64', '"TILE": 16'), ("triton.cdiv(groups, 64), p.B", "triton.cdiv(groups, 16), p.B")]),
        "64 groups for everybody": ((), [("tl.minimum(tl.load(top_k_ptr + b), GROUPS)", "tl.minimum(64, GROUPS)")]),
        "ties by a count from the end": ((), [("tl.cumsum(tie.to(tl.int32), 0) <= room", "tl.sum(tie.to(tl.int32), 0) - tl.cumsum(tie.to(tl.int32), 0, reverse=True) < room")]),
        "a reciprocal temperature": ((), [("x / tl.where(t == 0, 1.0, t) + noise", "x * (1.0 / tl.where(t == 0, 1.0, t)) + noise")]),
        "groups in a block of two dimensions": ((), [("    group = tl.load(chosen_ptr + b * 64 + at // 64)\n    offs = group * 64 + at % 64\n", "    chosen = tl.load(chosen_ptr + b * 64 + tl.arange(0, PLACES // 64))\n    offs = tl.reshape(chosen[:, None] * 64 + tl.arange(0, 64)[None, :], (PLACES,))\n    group = tl.where(offs < 0, -1, offs // 64)\n")]),
    },
}
