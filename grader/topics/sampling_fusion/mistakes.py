"""What goes wrong in draws: the tokens that each mistake gives, and the sentence that tells of it."""

import numpy as np

from grader.box.serve.frames import DTYPES
from grader.questions import Case
from grader.questions.families import computing, dense, family, one_stride, within_limit
from grader.topics.sampling_fusion import rows

LANES = (64, 128, 256, 512, 1024, 2048)


def row_by_row(pick, cold=False):
    """The tokens where `pick(inputs, i, x, t, u)` takes a row's; rows of temperature 0 are right, unless `cold`."""

    def wrong(inputs: dict, case: Case) -> dict:
        token = rows.tokens_wanted(inputs, case)["token"]
        for i in np.flatnonzero((inputs["temperature"] > 0) | cold):
            x, t = rows.final_logits(inputs, i), float(inputs["temperature"][i])
            if x.max() == -np.inf:
                continue
            token[i] = pick(inputs, i, x, t, rows.uniform(int(inputs["seed"][i]), np.arange(x.size)))
        return {"token": token}

    return wrong


def scored(score):
    """The same where `score(x, t, u)` is maximised."""
    return row_by_row(lambda inputs, i, x, t, u: rows.best(score(x, t, u)))


def with_inputs(**changed):
    """The right tokens of other inputs."""
    return lambda inputs, case: rows.tokens_wanted(
        inputs | {n: change(inputs[n]) for n, change in changed.items()}, case
    )


def _by_lane(lanes: int):
    """The noise of a token's lane in blocks of so many."""
    return scored(lambda x, t, u: x / t + rows.gumbel_of(u[np.arange(x.size) % lanes]))


def _of_equals(order):
    """Of equal scores the one that comes first in `order(number of tokens)`; cold rows too."""

    def pick(inputs, i, x, t, u):
        s = x / t + rows.gumbel_of(u) if t else x
        best = order(x.size)
        return int(best[np.argmax(s[best])])

    return row_by_row(pick, cold=True)


def _lane_first(lanes: int):
    """Each lane keeps its first, then the lowest lane wins, whatever its token."""
    return _of_equals(lambda n: np.lexsort((np.arange(n), np.arange(n) % lanes)))


def _highest_of_lanes(lanes: int):
    """Each lane keeps its first of equals, then the highest id of the lanes wins; cold rows too."""

    def pick(inputs, i, x, t, u):
        s = x / t + rows.gumbel_of(u) if t else x
        equals = np.flatnonzero(s == s.max())
        return int(equals[np.unique(equals % lanes, return_index=True)[1]].max())

    return row_by_row(pick, cold=True)


def _seed_by_block(lanes: int, step: int):
    """The noise of the seed plus `step` for each block of so many lanes."""

    def pick(inputs, i, x, t, u):
        token = np.arange(x.size)
        seeds = (int(inputs["seed"][i]) + token // lanes * step).astype(np.int32)
        return rows.best(x / t + rows.gumbel_of(rows.uniform(seeds, token)))

    return row_by_row(pick)


def rounded_logits(dtype):
    return with_inputs(logits=lambda x: x.astype(DTYPES[dtype]).astype(x.dtype))


def nearest(*table):
    """A knob taken from the values that a table holds."""
    known = np.array(table, np.float32)
    return lambda column: known[np.abs(column[:, None] - known).argmin(1)]


def _clipped(low: float, high: float):
    return scored(lambda x, t, u: x / t + rows.gumbel_of(np.clip(u, low, high)))


def by_inverse_cdf(inputs, i, x, t, u):
    """The row's first uniform number as a share of the mass, laid end to end by token."""
    mass = np.exp((x - x.max()) / t).cumsum()
    return int(np.searchsorted(mass, u[0] * mass[-1], side="right"))


def first_row(column: np.ndarray) -> np.ndarray:
    return np.full_like(column, column[0])


def with_tables(**tables):
    function = with_inputs(**{name: nearest(*values) for name, values in tables.items()})
    function.computes = True
    return function


GREEDY = family(
    "always greedy",
    "every row took its largest logit: the noise is missing where the temperature is not 0",
    with_inputs(temperature=np.zeros_like),
)
NEVER_GREEDY = family(
    "never greedy",
    "a temperature of 0 means the largest logit, without noise",
    with_inputs(temperature=lambda t: np.where(t == 0, np.float32(1), t)),
)
COLD_IS_GREEDY = family(
    "small temperatures greedy",
    "a temperature of 0 alone takes the largest logit: however small another is, it divides the logit as it is",
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
    "as if there were no temperature: it divides the logit alone, before the noise is added",
    scored(lambda x, t, u: x / t + rows.gumbel_of(u) / t),
)
ROUNDED_TO_FP16 = family(
    "rounded to fp16",
    "logits that differ in fp32 are equal in fp16: compare and add in fp32",
    rounded_logits("fp16"),
)


def of_each_row(*names: str) -> list:
    """A mistake for each column of which every row has a number of its own."""
    return [
        family(
            f"one {name}", f"each row has a {name} of its own: {name}[b]", with_inputs(**{name: first_row})
        )
        for name in names
    ]


ONE_SEED = family("one seed", "each row has a seed of its own: seed[b]", with_inputs(seed=first_row))
HIGHEST = family(
    "highest of equals", "of equal scores the lowest id is drawn", _of_equals(lambda n: np.arange(n)[::-1])
)
HIGHEST_OF_LANES = family(
    "highest of the lanes",
    "of equal scores the lowest id is drawn, between lanes too: tl.min over the ids of the best lanes, and a large number in the others, not tl.max",
    *(_highest_of_lanes(n) for n in LANES),
)
BANNED = family(
    "banned row drawn",
    "a row whose logits are all -inf gives -1",
    lambda i, c: {"token": np.maximum(rows.tokens_wanted(i, c)["token"], 0)},
)
STAND_INS = (-1e4, -1e9, float(np.finfo(np.float32).min))


def above(number: float, nothing: int):
    """The best score that lies above a number; `nothing` where none does."""

    def pick(inputs, i, x, t, u):
        s = x / t + rows.gumbel_of(u) if t else x
        found = rows.best(np.where(s > number, s, -np.inf))
        return nothing if found < 0 else found

    return row_by_row(pick, cold=True)


STAND_IN = "a number stands for minus infinity, and logits may lie below it: start the best score at -inf"
LOW = family(
    "a number for minus infinity",
    STAND_IN,
    *(above(n, nothing) for n in STAND_INS[:2] for nothing in (-1, 0)),
    above(STAND_INS[2], -1),
)
CLOSE = 1 - 2.0**-20  # u above this is one in a million, and in every row of hard close calls

DRAW = (
    GREEDY,
    NEVER_GREEDY,
    COLD_IS_GREEDY,
    SCALED,
    ONE_SEED,
    family(
        "seed by block",
        "the seed moves from block to block: it is seed[b] in every block, and the token's id alone makes the noise another",
        *(_seed_by_block(n, step) for n in LANES for step in (n, 1)),
    ),
    HIGHEST,
    HIGHEST_OF_LANES,
    BANNED,
    LOW,
    family(
        "lowest lane",
        "of equal scores the lowest id is drawn, not the lowest lane of a block",
        *(_lane_first(n) for n in LANES[:5]),
    ),
    *of_each_row("temperature"),
    family(
        "sign of the noise",
        "the noise has its sign turned round: it is -log(-log(u)), large where u is near 1",
        scored(lambda x, t, u: x / t - rows.gumbel_of(u)),
    ),
    family(
        "noise by lane",
        "tokens that share a lane share their noise: tl.rand takes the token's id, not the lane",
        *(_by_lane(n) for n in LANES),
    ),
    family(
        "another noise",
        "-log(-log(1 - u)) is as fair a noise, but it draws other tokens; the one asked for is -log(-log(u))",
        scored(lambda x, t, u: x / t + rows.gumbel_of(1 - u)),
    ),
    family(
        "base two",
        "the logarithms are natural ones: tl.log, not tl.log2",
        scored(lambda x, t, u: x / t - np.log2(-np.log2(u))),
    ),
    family(
        "one logarithm",
        "Gumbel noise takes the logarithm twice: -log(-log(u))",
        scored(lambda x, t, u: x / t - np.log(u)),
    ),
    ROUNDED_TO_FP16,
    family(
        "inverse CDF",
        "an inverse CDF draws as fairly, but other tokens: here each token has noise of its own, and the largest sum wins",
        row_by_row(by_inverse_cdf),
    ),
)

TEMPERATURES = (0.0, 0.3, 0.5, 0.7, 1.0, 1.3, 1.5, 1.7, 2.0)
temperature_table = computing(with_inputs(temperature=nearest(*TEMPERATURES)))
clipped = computing(_clipped(1e-3, 0.999))
an_epsilon = computing(scored(lambda x, t, u: x / t + rows.gumbel_of(np.minimum(u + 1e-6, CLOSE))))
of_16_bits = computing(_by_lane(1 << 16))
DRAW_SHORTCUTS = {
    "temperature from a table": temperature_table,
    "u clipped": clipped,
    "a millionth added to u": an_epsilon,
    "noise that repeats after 65,536 tokens": of_16_bits,
    **{f"V up to {most}": within_limit("V", most) for most in (64, 1024, 4096, 8192, 65536, 100_000)},
    **{f"B up to {most}": within_limit("B", most) for most in (8, 16, 32)},
    **{f"stride {axis} of logits taken for 1": one_stride("logits", axis) for axis in (0, 1)},
    "logits taken for dense": dense("logits"),
}
