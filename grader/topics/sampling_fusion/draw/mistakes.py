"""List the mistakes of *draw*, a row each."""

import numpy as np

from grader.questions.families import computing, dense, family, one_stride, within_limit
from grader.questions.rows import edited
from grader.topics.sampling_fusion import shared_mistakes
from grader.topics.sampling_fusion.shared_mistakes import (
    BANNED,
    HIGHEST,
    NEVER_GREEDY,
    ONE_SEED,
    ROUNDED_TO_FP16,
    STAND_IN,
    STAND_INS,
    TEMPERATURES,
    above,
    nearest,
    of_each_row,
    of_equals,
    row_by_row,
    scored,
    with_inputs,
)
from grader.topics.sampling_fusion.shared_rows import best, gumbel_of, uniform

LANES = (64, 128, 256, 512, 1024, 2048)


def _by_lane(lanes: int):
    """Use the noise of a token's lane in blocks of this length."""
    return scored(lambda x, t, u: x / t + gumbel_of(u[np.arange(x.size) % lanes]))


def _lane_first(lanes: int):
    """Each lane keeps its first, then the lowest lane wins, whatever its token."""
    return of_equals(lambda n: np.lexsort((np.arange(n), np.arange(n) % lanes)))


def _lane_last(lanes: int):
    """Each lane keeps its last of equals, then the lowest id of the lanes wins."""

    def pick(inputs, i, x, t, u):
        s = x / t + gumbel_of(u) if t else x
        equals = np.flatnonzero(s == s.max())
        return min({int(token) % lanes: int(token) for token in equals}.values())

    return row_by_row(pick, cold=True)


def _block_last(lanes: int):
    """The last block with the best score wins, and in it the lowest id."""

    def pick(inputs, i, x, t, u):
        s = x / t + gumbel_of(u) if t else x
        equals = np.flatnonzero(s == s.max())
        return int(equals[equals // lanes == equals[-1] // lanes][0])

    return row_by_row(pick, cold=True)


def _highest_of_lanes(lanes: int):
    """Keep each lane's first of equals, then let the highest id of the lanes win, in cold rows too."""

    def pick(inputs, i, x, t, u):
        s = x / t + gumbel_of(u) if t else x
        equals = np.flatnonzero(s == s.max())
        return int(equals[np.unique(equals % lanes, return_index=True)[1]].max())

    return row_by_row(pick, cold=True)


def _seed_by_block(lanes: int, step: int):
    """Use the noise of the seed plus `step` for each block of this many lanes."""

    def pick(inputs, i, x, t, u):
        token = np.arange(x.size)
        seeds = (int(inputs["seed"][i]) + token // lanes * step).astype(np.int32)
        return best(x / t + gumbel_of(uniform(seeds, token)))

    return row_by_row(pick)


def _clipped(low: float, high: float):
    return scored(lambda x, t, u: x / t + gumbel_of(np.clip(u, low, high)))


def by_inverse_cdf(inputs, i, x, t, u):
    """The row's first uniform number as a share of the mass, laid end to end by token."""
    mass = np.exp((x - x.max()) / t).cumsum()
    return int(np.searchsorted(mass, u[0] * mass[-1], side="right"))


COLD_IS_GREEDY = family(
    "small temperatures greedy",
    "only a temperature of exactly 0 takes the largest logit: any other temperature, however small, divides the logit",
    *(
        with_inputs(temperature=lambda t, least=least: np.where(t < least, 0, t))
        for least in (0.1, 0.05, 0.01)
    ),
    *(
        with_inputs(temperature=lambda t, least=least: np.where(t == 0, t, np.maximum(t, np.float32(least))))
        for least in (0.1, 0.05, 0.01)
    ),
)
SCALED = family(
    "noise scaled",
    "the temperature has no effect here: divide the logit by it before you add the noise",
    scored(lambda x, t, u: x / t + gumbel_of(u) / t),
)
HIGHEST_OF_LANES = family(
    "highest of the lanes",
    "of equal scores the lowest id is drawn, across the block too: take tl.min, not tl.max, over the ids with the best score, with a large number elsewhere",
    *(_highest_of_lanes(n) for n in LANES),
)
LOW = family(
    "a number for minus infinity",
    STAND_IN,
    *(above(n, nothing) for n in STAND_INS[:2] for nothing in (-1, 0)),
    above(STAND_INS[2], -1),
)
CLOSE = 1 - 2.0**-20  # u above this is one in a million, and in every row of hard close calls
temperature_table = computing(with_inputs(temperature=nearest(*TEMPERATURES)))
clipped = computing(_clipped(1e-3, 0.999))
an_epsilon = computing(scored(lambda x, t, u: x / t + gumbel_of(np.minimum(u + 1e-6, CLOSE))))


of_16_bits = computing(_by_lane(1 << 16))


GREEDY = "s = tl.where(t == 0, x, x / tl.where(t == 0, 1.0, t) + noise)"
INVERSE = """w = tl.where(offs < V, tl.exp((x - tl.max(x, 0)) / tl.where(t == 0, 1.0, t)), 0.0)
        before = tl.cumsum(w, 0) - w
        hit = (before <= tl.rand(seed, offs * 0) * tl.sum(w, 0)) & (w > 0)
        s = tl.where(t == 0, x, tl.where(hit, offs.to(tl.float32), float("-inf")))"""
WALKS_ALONE = """@triton.jit
def draw(logits_ptr, temperature_ptr, seed_ptr, token_ptr, B, V, stride_logitsb, stride_logitsv, BLOCK: tl.constexpr):
    for b in range(0, B):
        one_row(b, logits_ptr, temperature_ptr, seed_ptr, token_ptr, V, stride_logitsb, stride_logitsv, BLOCK)


"""


MISTAKES = (
    shared_mistakes.GREEDY,
    NEVER_GREEDY,
    COLD_IS_GREEDY,
    SCALED,
    ONE_SEED,
    family(
        "seed by block",
        "the seed changes from block to block: it is seed[b] in every block, and only the token's id makes the noise differ",
        *(_seed_by_block(n, step) for n in LANES for step in (n, 1)),
        edits=(("tl.rand(seed, offs)", "tl.rand(seed + start, offs)"),),
    ),
    HIGHEST,
    HIGHEST_OF_LANES,
    family(
        "later of equals",
        "an equal score of a later block replaces the earlier one, and of equal scores the lowest id is drawn: compare with >, not with >=",
        *(_lane_last(n) for n in LANES),
        *(_block_last(n) for n in LANES),
        edits=(("(s > best)", "(s >= best)"),),
    ),
    BANNED,
    LOW,
    family(
        "lowest lane",
        "of equal scores the lowest id is drawn, not the lowest index within a block",
        *(_lane_first(n) for n in LANES[:5]),
        edits=(
            (
                "chosen = tl.min(tl.where((best == top) & (who >= 0), who, 2147483647), 0)",
                "lane = tl.min(tl.where(best == top, lanes, BLOCK), 0)\n    chosen = tl.sum(tl.where(lanes == lane, who, 0), 0)",
            ),
        ),
    ),
    *of_each_row("temperature"),
    family(
        "sign of the noise",
        "the sign of the noise is reversed: it is -log(-log(u)), which is large if u is near 1",
        scored(lambda x, t, u: x / t - gumbel_of(u)),
        edits=(("noise = -tl.log(", "noise = tl.log("),),
    ),
    family(
        "noise by lane",
        "tokens at the same index in their blocks share their noise: give tl.rand the token's id, not that index",
        *(_by_lane(n) for n in LANES),
        edits=(("tl.rand(seed, offs)", "tl.rand(seed, lanes)"),),
    ),
    family(
        "another noise",
        "-log(-log(1 - u)) is just as fair, but it draws other tokens: the question asks for -log(-log(u))",
        scored(lambda x, t, u: x / t + gumbel_of(1 - u)),
        edits=(("tl.rand(seed, offs)", "(1 - tl.rand(seed, offs))"),),
    ),
    family(
        "base two",
        "use natural logarithms: tl.log, not tl.log2",
        scored(lambda x, t, u: x / t - np.log2(-np.log2(u))),
        edits=(("noise = -tl.log(-tl.log(", "noise = -tl.log2(-tl.log2("),),
    ),
    family(
        "one logarithm",
        "Gumbel noise takes the logarithm twice: -log(-log(u))",
        scored(lambda x, t, u: x / t - np.log(u)),
        edits=(("noise = -tl.log(-tl.log(tl.rand(seed, offs)))", "noise = -tl.log(tl.rand(seed, offs))"),),
    ),
    ROUNDED_TO_FP16,
    family(
        "inverse CDF",
        "an inverse CDF is just as fair, but it draws other tokens: give each token its own noise, and take the largest sum",
        row_by_row(by_inverse_cdf),
        edits=((GREEDY, INVERSE),),
    ),
    edited("always greedy", (GREEDY, "s = x"), told_as="always greedy"),
    edited("never greedy", (GREEDY, "s = x / tl.where(t == 0, 1.0, t) + noise"), told_as="never greedy"),
    edited(
        "small temperatures greedy",
        (GREEDY, GREEDY.replace("t == 0, x,", "t < 0.05, x,")),
        told_as="small temperatures greedy",
    ),
    edited(
        "a millionth added to u",
        ("tl.log(tl.rand(seed, offs))", "tl.log(tl.minimum(tl.rand(seed, offs) + 1e-6, 0.9999999))"),
    ),
    edited(
        "noise divided too",
        (GREEDY, "s = tl.where(t == 0, x, (x + noise) / tl.where(t == 0, 1.0, t))"),
        told_as="noise scaled",
    ),
    edited("one seed for all rows", ("tl.load(seed_ptr + b)", "tl.load(seed_ptr)"), told_as="one seed"),
    edited(
        "one temperature for all rows",
        ("tl.load(temperature_ptr + b)", "tl.load(temperature_ptr)"),
        told_as="one temperature",
    ),
    edited(
        "temperature off by a hundredth",
        ("x / tl.where(t == 0, 1.0, t)", "x / tl.where(t == 0, 1.0, 1.01 * t)"),
    ),
    edited(
        "noise of twelve bits",
        ("tl.rand(seed, offs)", "((tl.floor(tl.rand(seed, offs) * 4096) + 0.5) / 4096)"),
    ),
    edited(
        "noise in bf16",
        (
            "tl.log(tl.rand(seed, offs)))\n",
            "tl.log(tl.rand(seed, offs))).to(tl.bfloat16).to(tl.float32)\n",
        ),
    ),
    edited("neighbouring seeds share their noise", ("tl.load(seed_ptr + b)", "tl.load(seed_ptr + b) // 2")),
    edited(
        "a best score from -1e9",
        ('best = tl.full((BLOCK,), float("-inf")', "best = tl.full((BLOCK,), -1e9"),
        ('tl.where(top == float("-inf"), -1, chosen)', "tl.where(top == -1e9, -1, chosen)"),
        told_as="a number for minus infinity",
    ),
    edited(
        "a row of -inf gives a token",
        ('tl.where(top == float("-inf"), -1, chosen)', 'tl.where(top == float("-inf"), 0, chosen)'),
        told_as="banned row drawn",
    ),
    edited(
        "the highest id of equals",
        (
            "chosen = tl.min(tl.where((best == top) & (who >= 0), who, 2147483647), 0)",
            "chosen = tl.max(tl.where(best == top, who, -1), 0)",
        ),
        told_as="highest of the lanes",
    ),
    edited("lane for token", ("who = tl.where(better, offs, who)", "who = tl.where(better, lanes, who)")),
    edited("last block alone", ("better = (s > best) & (offs < V)", "better = offs < V")),
    edited("tail left out", ("range(0, V, BLOCK)", "range(0, V // BLOCK * BLOCK, BLOCK)")),
    edited(
        "read in half precision",
        (".to(tl.float32)\n        noise", ".to(tl.float16).to(tl.float32)\n        noise"),
        told_as="rounded to fp16",
    ),
    edited(
        "temperatures above 8 count as 8",
        ("x / tl.where(t == 0, 1.0, t)", "x / tl.where(t == 0, 1.0, tl.minimum(t, 8.0))"),
    ),
    edited("a seed without its sign", ("tl.load(seed_ptr + b)", "(tl.load(seed_ptr + b) & 0x7FFFFFFF)")),
    edited("temperature multiplied", ("x / tl.where(t == 0, 1.0, t)", "x * tl.where(t == 0, 1.0, t)")),
    edited(
        "read twice",
        (
            "        noise =",
            '        x = tl.maximum(x, tl.load(row + offs * stride_logitsv, mask=offs < V, other=float("-inf")).to(tl.float32))\n        noise =',
        ),
        part="traffic",
    ),
    edited(
        "the highest of all equals",
        ("(s > best)", "(s >= best)"),
        (
            "chosen = tl.min(tl.where((best == top) & (who >= 0), who, 2147483647), 0)",
            "chosen = tl.max(tl.where(best == top, who, -1), 0)",
        ),
        told_as="highest of equals",
    ),
    edited("no temperature", ("x / tl.where(t == 0, 1.0, t)", "x"), told_as="noise scaled"),
    edited("u never beyond 0.999", ("tl.rand(seed, offs)", "tl.minimum(tl.rand(seed, offs), 0.999)")),
    edited("8192 tokens at most", ("range(0, V, BLOCK)", "range(0, tl.minimum(V, 8192), BLOCK)")),
    edited(
        "written by two programs in two widths",
        ("    b = tl.program_id(0)\n", "    b = tl.program_id(0) // 2\n"),
        (
            '    tl.store(token_ptr + b, tl.where(top == float("-inf"), -1, chosen))',
            '    found = tl.where(top == float("-inf"), -1, chosen)\n    halves = token_ptr.to(tl.pointer_type(tl.int16)) + 2 * b\n    if tl.program_id(0) % 2 == 0:\n        tl.store(token_ptr + b, found * 0)\n    else:\n        tl.store(halves, found.to(tl.int16))\n        tl.store(halves + 1, (found >> 16).to(tl.int16))',
        ),
        ('"grid": (p.B,)', '"grid": (2 * p.B,)'),
    ),
    edited(
        "scores through scratch",
        ("seed_ptr, token_ptr, V", "seed_ptr, token_ptr, kept_ptr, V"),
        (
            "        better =",
            "        tl.store(kept_ptr + b * V + offs, s, mask=offs < V)\n        better =",
        ),
        ('return {"steps"', 'return {"scratch": {"kept": ((p.B, p.V), "fp32", 0)}, "steps"'),
        part="traffic",
    ),
    edited(
        "one program for all rows",
        ("def draw(logits_ptr", "def one_row(b, logits_ptr"),
        ("    b = tl.program_id(0)\n", ""),
        ("b.to(tl.int64)", "b"),
        ("def launch(p):", WALKS_ALONE + "def launch(p):"),
        ('"grid": (p.B,)', '"grid": (1,)'),
        part="speed",
    ),
    edited(
        "noise a hundred times",
        (
            "        s = tl.where(t == 0",
            "        for _ in range(100):\n            noise = noise + 0.0 * tl.log(2.0 - noise * 0.0)\n        s = tl.where(t == 0",
        ),
        part="speed",
    ),
)


SHORTCUTS = {
    "temperature from a table": temperature_table,
    "u clipped": clipped,
    "a millionth added to u": an_epsilon,
    "noise that repeats after 65,536 tokens": of_16_bits,
    **{f"V up to {most}": within_limit("V", most) for most in (64, 1024, 4096, 8192, 65536, 100_000)},
    **{f"B up to {most}": within_limit("B", most) for most in (8, 16, 32)},
    **{f"stride {axis} of logits taken for 1": one_stride("logits", axis) for axis in (0, 1)},
    "logits taken for dense": dense("logits"),
}
