"""Samplers that are a little wrong: what each draws, and how surely a histogram and the check's tokens show it.

`python -m grader.topics.sampling_fusion.tests.biases` prints the table; the tests beside it hold each figure.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from grader import questions
from grader.topics.sampling_fusion.inverse_pick.cases import inverse_pick
from grader.topics.sampling_fusion.masked_draw.mistakes import penalised
from grader.topics.sampling_fusion.penalize.cases import penalize
from grader.topics.sampling_fusion.shared_mistakes import among, row_by_row, scored
from grader.topics.sampling_fusion.shared_rows import gumbel_of, survivors, tokens_wanted
from grader.topics.sampling_fusion.tests import chi_square
from grader.topics.sampling_fusion.tests.chi_square import (
    limit,
    merged,
    noncentrality,
    power,
    statistic,
    tail,
)

DRAWS = 20_000  # in a histogram
ONCE_IN = 2e6  # of the limit: the true tail is some 40% heavier, so that a wrong alarm is rarer than 1e-6
SURE = 0.99
ROW = np.array([0.4, -1.6, -0.3, 1.2, 2.1, -0.7, -0.1, -1.0, 1.6, 2.6, 1.0, -1.4])
T = 0.7
NUCLEUS = (0, 0.8, 0.0)  # top-k, top-p, min-p
FLOOR = 0.1
HISTORY, PENALTIES = np.array([9, 9, 4, 9, 8]), (1.2, 0.3, 0.2)
LANES = 4
CLOSE, FEW = "scores that lie close together", "many rows of few tokens"


def chances_of(scores: np.ndarray, stays=True) -> np.ndarray:
    w = np.where(stays, np.exp(scores - scores.max()), 0.0)
    return w / w.sum()


def largest(scores, noise) -> np.ndarray:
    return np.argmax(scores + noise, axis=-1)


def on_levels(scores: np.ndarray, levels: np.ndarray) -> np.ndarray:
    """What comes of noise that takes each of these levels as often; of equals the lowest id wins."""
    chances = []
    for i, score in enumerate(scores):
        won = np.ones(levels.size)
        for j, other in enumerate(scores):
            if j != i:
                won *= np.searchsorted(other + levels, score + levels, "left" if j < i else "right")
                won /= levels.size
        chances.append(won.mean())
    return np.array(chances)


def coarse(bits: int):
    return lambda u: gumbel_of((np.floor(u * 2**bits) + 0.5) / 2**bits)


def zero_wins(u: np.ndarray) -> np.ndarray:
    """Ten bits that may all be 0, and 1 - u in place of u: then the noise is infinite."""
    with np.errstate(divide="ignore"):
        return -np.log(-np.log(1 - np.floor(u * 1024) / 1024))


def every_level(noise, bits: int) -> np.ndarray:
    return np.sort(noise((np.arange(2**bits) + 0.5) / 2**bits))


def one_too_many(x, t, k, p, m) -> np.ndarray:
    """Top-p that also keeps the token after the one that crosses."""
    flags, allowed = survivors(x, t, (k, p, m)), survivors(x, t, (k, 1.0, m))
    more = np.flatnonzero(allowed & ~flags)
    if more.size:
        flags[more[np.argmax(x[more])]] = True
    return flags


def of_the_sum(x, t, k, p, m) -> np.ndarray:
    """Min-p as a share of the kept mass, not of the best token's weight."""
    flags = survivors(x, t, (k, p, 0.0))
    mass = chances_of(np.asarray(x) / t, flags)
    return flags & ((mass >= m) | (x == x.max()))


def forgets_the_last(x, history, *penalties):
    return penalize(x, history[:-1], *penalties)


def by_lane(u: np.ndarray, lanes: int = LANES) -> np.ndarray:
    return gumbel_of(u[..., np.arange(u.shape[-1]) % lanes])


def lane_maxima() -> np.ndarray:
    """Of tokens that share their noise the one with the largest logit always wins."""
    lane = np.arange(ROW.size) % LANES
    return np.array([x == ROW[lane == lane[i]].max() for i, x in enumerate(ROW)])


def inverse(u: np.ndarray) -> np.ndarray:
    return np.searchsorted(np.cumsum(RIGHT), u[:, 0])


@dataclass(frozen=True)
class Bias:
    draw: Callable  # uniform numbers [n, V] -> tokens [n] of ROW
    biased: np.ndarray  # the chances with which they come
    tokens: Callable  # the same fault in the check's own rows: (inputs, case) -> tokens
    chances: np.ndarray  # of a right sampler
    question: str = "draw"
    kind: str = CLOSE
    together: int = 1  # rows that draw the same token

    def counts(self, rng: np.random.Generator, trials: int) -> np.ndarray:
        return self.together * rng.multinomial(DRAWS // self.together, self.biased, size=trials)

    def power(self) -> float:
        """How often a histogram of DRAWS is refused."""
        if self.together == 1:
            return power(self.chances, self.biased, DRAWS, ONCE_IN)
        shares = merged(self.chances, DRAWS)[1]
        value = limit(shares.size - 1, ONCE_IN)
        if self.together == DRAWS:  # one token fills the histogram
            return float(shares @ (DRAWS * (1 / shares - 1) > value))
        return tail(value / self.together, shares.size - 1)

    def needed(self) -> float:
        """Draws until a histogram shows it with a chance of SURE."""
        if self.together > 1:
            return np.inf if self.power() < SURE else 0
        place, shares = merged(self.chances, DRAWS)
        if (forbidden := self.biased[place < 0].sum()) > 0:
            return np.log(1 - SURE) / np.log(1 - forbidden)
        effect = chi_square.effect(self.chances, self.biased, DRAWS)
        return noncentrality(shares.size - 1, ONCE_IN, SURE) / effect

    def differs(self, seed: int) -> bool:
        """Whether one case of the check refuses these tokens."""
        question = questions.find(f"sampling_fusion.{self.question}")
        rng = np.random.default_rng(seed)
        case = next(c for c in question.hidden(rng) if c.kind == self.kind)
        inputs = question.inputs(case, rng)
        wrong = self.tokens(inputs, case)
        return bool(question.agree(inputs, case, wrong, question.reference(inputs, case)))


RIGHT = chances_of(ROW / T)
PENALISED, FORGETFUL = penalize(ROW, HISTORY, *PENALTIES), penalize(ROW, HISTORY[:-1], *PENALTIES)
NARROW, WIDE = survivors(ROW, T, NUCLEUS), one_too_many(ROW, T, *NUCLEUS)
ENOUGH, FEWER = survivors(ROW, T, (0, 1.0, FLOOR)), of_the_sum(ROW, T, 0, 1.0, FLOOR)


def _noise(noise, biased) -> Bias:
    return Bias(lambda u: largest(ROW / T, noise(u)), biased, scored(lambda x, t, u: x / t + noise(u)), RIGHT)


def of_bits(bits: int) -> Bias:
    return _noise(coarse(bits), on_levels(ROW / T, every_level(coarse(bits), bits)))


def tokens_of_bits(bits: int) -> Bias:
    """The same for its tokens alone: what comes of 2**22 levels takes seconds."""
    return _noise(coarse(bits), np.full(ROW.size, np.nan))


def _warmer(factor: float) -> Bias:
    tokens = scored(lambda x, t, u: x / (factor * t) + gumbel_of(u))
    return Bias(
        lambda u: largest(ROW / (factor * T), gumbel_of(u)),
        chances_of(ROW / (factor * T)),
        tokens,
        RIGHT,
    )


def _filtered(stays, flags, right) -> Bias:
    def draw(u):
        return largest(np.where(flags, ROW / T, -np.inf), gumbel_of(u))

    return Bias(
        draw,
        chances_of(ROW / T, flags),
        among(stays),
        chances_of(ROW / T, right),
        "filtered_draw",
        FEW,
    )


def _seeds(together: int) -> Bias:
    def tokens(inputs, case):
        same = inputs["seed"][np.arange(case.sizes["B"]) // together * together]
        return tokens_wanted(inputs | {"seed": same}, case)

    def draw(u):
        return largest(ROW / T, gumbel_of(u[np.arange(len(u)) // together * together]))

    return Bias(draw, RIGHT, tokens, RIGHT, together=together)


BIASES = {
    "noise scaled by the temperature": Bias(
        lambda u: largest(ROW, gumbel_of(u)),
        chances_of(ROW),
        scored(lambda x, t, u: (x + gumbel_of(u)) / t),
        RIGHT,
    ),
    "noise of 6 bits": of_bits(6),
    "noise of 12 bits": of_bits(12),
    "u = 0 wins, of 10 bits": _noise(zero_wins, on_levels(ROW / T, every_level(zero_wins, 10))),
    "noise by lane": _noise(by_lane, chances_of(ROW / T, lane_maxima())),
    "temperature 10% too high": _warmer(1.10),
    "temperature 5% too high": _warmer(1.05),
    "temperature 1% too high": _warmer(1.01),
    "one seed for all rows": _seeds(DRAWS),
    "neighbours share a seed": _seeds(2),
    "top-p keeps one too many": _filtered(one_too_many, WIDE, NARROW),
    "min-p of the sum": _filtered(of_the_sum, FEWER, ENOUGH),
    "last penalty forgotten": Bias(
        lambda u: largest(FORGETFUL / T, gumbel_of(u)),
        chances_of(FORGETFUL / T),
        penalised(forgets_the_last),
        chances_of(PENALISED / T),
        "masked_draw",
    ),
    "inverse CDF, the token after": Bias(
        lambda u: np.minimum(inverse(u) + 1, ROW.size - 1),
        np.append(0, RIGHT[:-1]) + np.append(np.zeros(ROW.size - 1), RIGHT[-1]),
        row_by_row(
            lambda inputs, i, x, t, u: min(inverse_pick(np.exp((x - x.max()) / t), u[0]) + 1, x.size - 1)
        ),
        RIGHT,
    ),
}


def table(trials: int = 30) -> list[tuple]:
    """(name, power of a histogram, measured, draws it would need, measured power of the tokens)."""
    found, rng = [], np.random.default_rng(0)
    for name, bias in BIASES.items():
        value = limit(merged(bias.chances, DRAWS)[1].size - 1, ONCE_IN)
        refused = [statistic(c, bias.chances)[0] > value for c in bias.counts(rng, 10 * trials)]
        told = np.mean([bias.differs(seed) for seed in range(trials)])
        found.append((name, bias.power(), float(np.mean(refused)), bias.needed(), float(told)))
    return found


if __name__ == "__main__":
    print(f"{'bias':<32}  histogram of {DRAWS}: computed, measured   draws for {SURE:.0%}   tokens")
    for name, computed, measured, draws, told in table():
        print(f"{name:<32}{computed:>22.1%} {measured:>10.1%} {draws:>20,.0f} {told:>12.0%}")
