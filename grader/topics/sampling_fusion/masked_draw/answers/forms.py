"""List right answers to *masked draw* in other forms."""

from grader.topics.sampling_fusion.shared_answers import BETTER
from grader.topics.sampling_fusion.shared_answers import LOOP

COUNT = "        for l in range(0, L):\n            count += (offs == tl.load(history_ptr + b * stride_historyb + l * stride_historyl)).to(tl.float32)\n"
FORMS = {
        "a word of the mask at a time, helper functions": ((), "masked_helpers"),
        "loads of allowed logits alone": ((), "masked_allowed_alone"),
        "blocks of 64": ((), [("min(1024, triton.next_power_of_2(p.V))", "min(64, triton.next_power_of_2(p.V))")]),
        "the history in one block, for 32 tokens": (("traffic",), [(COUNT, "        past = tl.arange(0, PAST)\n        old = tl.load(history_ptr + b * stride_historyb + past * stride_historyl, mask=past < L, other=-1)\n        count = tl.sum((offs[:, None] == old[None, :]).to(tl.float32), 1)\n"), ("BLOCK: tl.constexpr", "BLOCK: tl.constexpr, PAST: tl.constexpr"), ('"BLOCK": block', '"BLOCK": block, "PAST": max(2, triton.next_power_of_2(p.L))'), ("min(1024,", "min(32,")]),
        "bits by masks": ((), [("((word >> (offs % 32)) & 1) != 0", "(word & (1 << (offs % 32))) != 0")]),
        "a reciprocal temperature": ((), [("x / tl.where(t == 0, 1.0, t) - tl.log", "x * (1.0 / tl.where(t == 0, 1.0, t)) - tl.log")]),
        "two branches": ((), [("s = tl.where(t == 0, x, x / tl.where(t == 0, 1.0, t) - tl.log(-tl.log(tl.rand(seed, offs))))", "s = x\n        if t != 0:\n            s = x / t - tl.log(-tl.log(tl.rand(seed, offs)))")]),
        "banned tokens last": ((), [('        x = tl.where(((word >> (offs % 32)) & 1) != 0, x, float("-inf"))\n', ""), ("        better =", '        s = tl.where(((word >> (offs % 32)) & 1) != 0, s, float("-inf"))\n        better =')]),
        "a while loop": ((), [(LOOP, "    start = 0\n    while start < V:"), ("        " + BETTER, "        " + BETTER + "        start += BLOCK\n")]),
    }
