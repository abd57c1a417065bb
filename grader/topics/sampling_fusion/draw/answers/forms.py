"""List right answers to *draw* in other forms."""

from grader.topics.sampling_fusion.shared_answers import BETTER
from grader.topics.sampling_fusion.shared_answers import LOOP

NOISE = "noise = -tl.log(-tl.log(tl.rand(seed, offs)))"
FORMS = {
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
    }
