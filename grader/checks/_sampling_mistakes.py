"""What goes wrong in draws again and again: the tokens that each mistake would give, and the sentence that tells of it."""

from dataclasses import replace

import numpy as np

from grader.checks import _sampling_rows as rows
from grader.checks._sampling_rules import crossing_dropped, inverse_pick, penalize
from grader.questions import Case, Mistake
from kernels.sampling_fusion.requests import unpack_bits

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


def _with(**changed):
    """The right tokens of other inputs."""
    return lambda inputs, case: rows.tokens_wanted(
        inputs | {n: change(inputs[n]) for n, change in changed.items()}, case
    )


def _by_lane(inputs: dict, case: Case, got: np.ndarray, want: np.ndarray) -> bool:
    """Whether the noise is that of a token's lane, for some width of a block."""
    for lanes in LANES:
        if lanes < case.sizes["V"] and not np.array_equal(got, want):
            pick = scored(lambda x, t, u, n=lanes: x / t + rows.gumbel_of(u[np.arange(x.size) % n]))
            if np.array_equal(pick(inputs, case)["token"], got):
                return True
    return False


def told_apart(*table: Mistake) -> tuple[Mistake, ...]:
    """Each shows where the tokens are those of this mistake and of no other: one row that differs may fit several."""

    def fits(mistake, inputs, case, got, want):
        if mistake.shows is not None:
            return mistake.shows(inputs, case, got, want)
        return np.array_equal(mistake.wrong(inputs, case)["token"], got) and not np.array_equal(got, want)

    def alone(mistake):
        return lambda *run: fits(mistake, *run) and not any(fits(m, *run) for m in table if m is not mistake)

    return tuple(replace(mistake, shows=alone(mistake)) for mistake in table)


def _first(column: np.ndarray) -> np.ndarray:
    return np.full_like(column, column[0])


GREEDY = Mistake("always greedy", "every row took its largest logit: the noise is missing where the temperature is not 0", wrong=_with(temperature=np.zeros_like))  # fmt: skip
NEVER_GREEDY = Mistake("never greedy", "a temperature of 0 means the largest logit, without noise", wrong=_with(temperature=lambda t: np.where(t == 0, np.float32(1), t)))  # fmt: skip
SCALED = Mistake("noise scaled", "the temperature divides the logit alone, not the noise", wrong=scored(lambda x, t, u: (x / t + rows.gumbel_of(u) / t)))  # fmt: skip
ONE_SEED = Mistake("one seed", "each row has a seed of its own: seed[b]", wrong=_with(seed=_first))

DRAW = told_apart(
    GREEDY, NEVER_GREEDY, SCALED, ONE_SEED,
    Mistake("one temperature", "each row has a temperature of its own: temperature[b]", wrong=_with(temperature=_first)),
    Mistake("sign of the noise", "the noise has its sign turned round: it is -log(-log(u)), large where u is near 1", wrong=scored(lambda x, t, u: x / t - rows.gumbel_of(u))),
    Mistake("noise by lane", "tokens that share a lane share their noise: tl.rand takes the token's id, not the lane", shows=_by_lane),
    Mistake("another noise", "-log(-log(1 - u)) is as fair a noise, but it draws other tokens; the one asked for is -log(-log(u))", wrong=scored(lambda x, t, u: x / t + rows.gumbel_of(1 - u))),
    Mistake("inverse CDF", "an inverse CDF draws as fairly, but other tokens: here each token has noise of its own, and the largest sum wins", wrong=row_by_row(lambda inputs, i, x, t, u: inverse_pick(np.exp((x - x.max()) / t), u[0]))),
)  # fmt: skip


def penalised(change):
    """The tokens where a row's penalties are `change(x, history, repetition, frequency, presence)`."""

    def drawn(inputs, i, x, t, u):
        may = unpack_bits(inputs["allowed"][i : i + 1], x.size)[0]
        history = inputs["history"][i]
        numbers = (float(inputs[n][i]) for n in ("repetition", "frequency", "presence"))
        x = np.where(may, inputs["logits"][i].astype(np.float64), -np.inf)
        x = change(x, history[history >= 0], *numbers)
        return rows.best(x / t + rows.gumbel_of(u) if t else x)

    return row_by_row(drawn, cold=True)


def _always_divides(x, history, r, f, p):
    return penalize(np.where(np.isin(np.arange(x.size), history), x / r, x), history, 1.0, f, p)


MASKED = told_apart(
    Mistake("banned tokens drawn", "a token was drawn that the mask bans: -inf must stay -inf through penalties and noise", shows=lambda i, c, got, want: bool((want == -1).any() and (got[want == -1] >= 0).any())),
    Mistake("no penalties", "the penalties changed nothing", wrong=_with(history=lambda h: np.full_like(h, -1))),
    GREEDY, NEVER_GREEDY,
    Mistake("always divides", "a negative logit divided by the repetition penalty goes up: multiply it instead", wrong=penalised(_always_divides)),
    Mistake("presence by count", "presence is taken off once, frequency once for each time", wrong=penalised(lambda x, h, r, f, p: penalize(x, h, r, f + p, 0.0))),
    Mistake("subtracted first", "the repetition penalty comes before the other two", wrong=penalised(lambda x, h, r, f, p: penalize(penalize(x, h, 1.0, f, p), h, r, 0.0, 0.0))),
)  # fmt: skip


def among(stays):
    """The tokens drawn among those that `stays(x, t, top_k, top_p, min_p)` flags."""

    def drawn(inputs, i, x, t, u):
        return rows.best(np.where(stays(x, t, *rows.filters(inputs, i)), x / t + rows.gumbel_of(u), -np.inf))

    return row_by_row(drawn)


FILTERED = told_apart(
    Mistake("no filter", "a token was drawn that the filters had ruled out", wrong=scored(lambda x, t, u: x / t + rows.gumbel_of(u))),
    GREEDY, NEVER_GREEDY,
    Mistake("crossing token dropped", "the token that crosses p stays: compare the mass before it, not with it", wrong=among(crossing_dropped)),
    Mistake("top-p of everything", "top-p's mass is that of what top-k kept, not of the whole row", wrong=among(lambda x, t, k, p, m: rows.survivors(x, t, k, 1.0, m) & rows.survivors(x, t, 0, p, m))),
    Mistake("no temperature", "the weights of top-p and min-p are taken without the temperature", wrong=among(lambda x, t, k, p, m: rows.survivors(x, 1.0, k, p, m))),
)  # fmt: skip
