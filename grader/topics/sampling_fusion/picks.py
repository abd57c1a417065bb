"""The two ways to draw one token, each by numbers that are given: what is asked, and what is often wrong."""

import numpy as np

from grader.questions import Call, Mistake, NumpyQuestion, Part
from grader.questions.draws import between, log_uniform
from grader.topics.sampling_fusion.rows import gumbel_of

LESSON = "course/06_sampling_fusion/b_rules_and_draws.ipynb"


def gumbel_pick(logits, temperature, u):
    return int(np.argmax(np.asarray(logits, np.float64) / temperature + gumbel_of(u)))


def inverse_pick(weights, u):
    before = np.cumsum(weights) - weights
    return int(np.flatnonzero((weights > 0) & (before <= u * np.sum(weights)))[-1])


def _near_the_ends(rng, n):
    """Uniform numbers, half of them so close to 0 or 1 that a clipped or rounded one shows."""
    far = np.exp(rng.uniform(np.log(1e-12), np.log(1e-3), n))
    return np.where(
        rng.random(n) < 0.5, np.where(rng.random(n) < 0.5, far, 1 - far), rng.uniform(0.01, 0.99, n)
    )


def _close(rng, n):
    """Logits made of the noise, so that the sums lie close together and each little change picks another token."""
    u, temperature = _near_the_ends(rng, n), log_uniform(rng, 0.2, 4.0)
    return temperature * (0.02 * rng.permutation(n) - gumbel_of(u)), temperature, u


def _lifted(x, t, u):
    """The same draw, with logits beyond what np.exp can take."""
    return x + 800 * t, t, u


# Between them each mistake draws a token of its own.
MANY = (
    (
        np.array([0.7, 1.6, 0.8, -0.6, -0.2, -1.2, -0.2, -0.8, -0.8, 1.7, -1.2, -0.6, -0.4, -1.3]),
        3.0,
        np.array([0.55, 0.35, 0.86, 0.93, 0.54, 0.15, 0.59, 0.25, 0.51, 0.38, 0.94, 0.77, 0.41, 0.38]),
    ),
    (
        np.array([1.4, -0.3, -1.6, 0.8, 1.6, 0.4, 0.8, 0.9, 0.4, -0.1, 0.0, -0.4, 1.3, -0.5]),
        2.0,
        np.array([0.32, 0.48, 0.28, 0.27, 0.58, 0.2, 0.23, 0.49, 0.65, 0.78, 0.66, 0.95, 0.8, 0.66]),
    ),
)

DRAWS = NumpyQuestion(
    id="sampling_fusion.gumbel_pick",
    notebook="concepts",
    asks="gumbel_pick(logits, temperature, u): the token with the largest logit / T + Gumbel noise, made of the uniform numbers u",
    entry="gumbel_pick",
    parts=(Part("values", 2, "calls"),),
    reference=gumbel_pick,
    public=(
        Call((np.array([1.0, 2.0, 3.0]), 1.0, np.array([0.9, 0.5, 0.1]))),
        Call((np.array([0.0, 1.0]), 0.5, np.array([0.9, 0.5])), "a temperature"),
        *(Call(call, "many tokens") for call in MANY),
    ),
    hidden=lambda rng: (
        [Call(_close(rng, n)) for n in rng.integers(12, 60, 14)]
        + [Call(_lifted(*_close(rng, n)), "large logits") for n in rng.integers(30, 60, 3)]
    ),
    where=f'{LESSON}, "Two ways to draw"',
    hints=(
        "Gumbel noise is -log(-log(u)); where is it large?",
        "Add one noise number to each scaled logit and take the place of the largest sum.",
        "int(np.argmax(logits / temperature - np.log(-np.log(u))))",
    ),
    mistakes=(
        Mistake(
            "the sum itself",
            "that is the largest sum itself; its place is asked: np.argmax, not np.max",
            wrong=lambda x, t, u: float(np.max(x / t + gumbel_of(u))),
        ),
        Mistake(
            "noise scaled",
            "as if there were no temperature: it divides the logits alone, before the noise is added",
            wrong=lambda x, t, u: int(np.argmax((x + gumbel_of(u)) / t)),
        ),
        Mistake(
            "sign",
            "the sign of the noise is turned round",
            wrong=lambda x, t, u: int(np.argmax(x / t - gumbel_of(u))),
        ),
        Mistake(
            "one logarithm",
            "Gumbel noise takes the logarithm twice: -log(-log(u))",
            wrong=lambda x, t, u: int(np.argmax(x / t - np.log(u))),
        ),
        Mistake(
            "base two",
            "the logarithms are natural ones",
            wrong=lambda x, t, u: int(np.argmax(x / t - np.log2(-np.log2(u)))),
        ),
        Mistake(
            "no noise",
            "the noise is missing: this is the largest logit",
            wrong=lambda x, t, u: int(np.argmax(x)),
        ),
        Mistake(
            "a race of powers",
            "-log(u) / exp(x / T) is as good a race, but np.exp overflows from 710 on and all of these arrive at 0: stay with logit / T + noise",
            wrong=lambda x, t, u: int(np.argmin(-np.log(u) / np.exp(x / t))),
        ),
        Mistake(
            "another noise",
            "-log(-log(1 - u)) is as fair a noise, but it draws other tokens",
            wrong=lambda x, t, u: int(np.argmax(x / t + gumbel_of(1 - u))),
        ),
    ),
)


def _with_zeros(rng, n):
    return np.where(rng.random(n) < 0.3, 0.0, rng.random(n)) + np.eye(n)[rng.integers(n)]


def _rounded_short(rng):
    """Weights whose running sum ends below u of their sum, by rounding alone, for the largest u that there is."""
    u = float(np.nextafter(1.0, 0.0))
    while True:
        w = np.append(rng.random(between(rng, 20, 40)), 0.0)
        if np.cumsum(w)[-1] <= u * np.sum(w):
            return w, u


def _in_float32(w, u):
    w = np.asarray(w, np.float32)
    before = np.cumsum(w) - w
    return int(np.flatnonzero((w > 0) & (before <= np.float32(u) * np.sum(w)))[-1])


def _one_before_many(rng):
    """A weight before so many tiny ones that single precision adds none of them to it, and u among these."""
    many = between(rng, 40, 90)
    w = np.append(1.0, np.full(many, 1e-9))
    return w, float((1 + 1e-9 * (between(rng, many // 3, many - 2) + 0.5)) / w.sum())


INVERSE = NumpyQuestion(
    id="sampling_fusion.inverse_pick",
    notebook="concepts",
    asks="inverse_pick(weights, u): the last token whose predecessors hold at most u of the whole weight; weight 0 is never drawn",
    entry="inverse_pick",
    parts=(Part("values", 2, "calls"),),
    reference=inverse_pick,
    public=(
        Call((np.array([1.0, 2.0, 1.0]), 0.8)),
        Call((np.array([0.0, 3.0, 0.0, 1.0]), 0.8), "zeros between"),
    ),
    hidden=lambda rng: (
        [Call((_with_zeros(rng, between(rng, 5, 40)), float(rng.random()))) for _ in range(8)]
        + [
            Call((np.array([2.0, 1.0, 0.0]), 1 - 1e-9), "u near 1"),
            *(Call(_rounded_short(rng), "u next to 1, and a last weight of 0") for _ in range(2)),
            Call((np.array([0.0, 1.0]), 0.0), "u of 0"),
            Call(_one_before_many(rng), "one weight before many tiny ones"),
            Call((np.array([1.0, 1.0, 2.0, 4.0]), 0.25), "u on a border"),
            Call((5 * rng.random(20), float(rng.uniform(0.3, 0.7))), "weights that do not add up to 1"),
            Call((rng.random(20) / 40, float(rng.uniform(0.3, 0.7))), "weights that do not add up to 1"),
        ]
    ),
    where=f'{LESSON}, "Two ways to draw"',
    hints=(
        "Lay the weights end to end; u says how far along to look.",
        "before = cumulative sum without the token itself; a token of weight 0 has no length to be hit.",
        "np.flatnonzero((weights > 0) & (before <= u * weights.sum()))[-1]",
    ),
    mistakes=(
        Mistake(
            "first instead of last",
            "of the tokens whose predecessors hold at most u, the last is asked and not the first: [-1]",
            wrong=lambda w, u: int(np.flatnonzero((w > 0) & (np.cumsum(w) - w <= u * np.sum(w)))[0]),
        ),
        Mistake(
            "weight 0",
            "on a border the later token is drawn, and at u = 0 none of weight 0: the first whose running sum lies above u of the whole, not at it (np.searchsorted does so with side='right')",
            wrong=lambda w, u: int(np.searchsorted(np.cumsum(w), u * np.cumsum(w)[-1])),
        ),
        Mistake(
            "weight 0 at the end",
            "a token of weight 0 is never drawn: where the running sum is rounded below u of the sum, the last one is",
            wrong=lambda w, u: int(np.flatnonzero(np.cumsum(w) - w <= u * np.sum(w))[-1]),
        ),
        Mistake(
            "not the whole weight",
            "u is a share of the whole weight, which need not be 1",
            wrong=lambda w, u: int(np.flatnonzero((w > 0) & (np.cumsum(w) - w <= u))[-1]),
        ),
        Mistake(
            "sums of 32 bits",
            "in float32 a sum of 1 and 0.000000001 is 1: add the weights up in float64",
            wrong=_in_float32,
        ),
        Mistake(
            "before the border",
            "a token whose predecessors hold exactly u is drawn: <=, not <",
            wrong=lambda w, u: int(
                max(np.flatnonzero(w)[0], *np.flatnonzero((w > 0) & (np.cumsum(w) - w < u * np.sum(w))), -1)
            ),
        ),
        Mistake(
            "mass with it",
            "the mass before a token decides, not the mass with it",
            wrong=lambda w, u: int(np.flatnonzero((w > 0) & (np.cumsum(w) <= u * np.sum(w)))[-1]),
        ),
    ),
)

QUESTIONS = (DRAWS, INVERSE)


def nearest_of(*values):
    return lambda knob: min(values, key=lambda known: abs(known - knob))


known_temperature = nearest_of(0.3, 0.5, 0.7, 1.0, 1.5, 1.7, 2.0)
# Answers that hold for some calls alone.
SHORTCUTS = {
    DRAWS.id: {
        "temperature from a table": lambda x, t, u: gumbel_pick(x, known_temperature(t), u),
        "u clipped": lambda x, t, u: gumbel_pick(x, t, np.clip(u, 1e-3, 1 - 1e-3)),
        "u in fp32": lambda x, t, u: gumbel_pick(x, t, np.asarray(u, np.float32)),
    },
}
