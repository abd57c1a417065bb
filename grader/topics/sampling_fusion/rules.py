"""The rules in numpy, one row at a time, with their edges: what the concepts lab asks."""

import numpy as np

from grader.questions import Call, Mistake, NumpyQuestion, Part
from grader.questions.draws import between, log_uniform
from grader.topics.sampling_fusion import filters, rows
from grader.topics.sampling_fusion.picks import known_temperature, nearest_of
from kernels.sampling_fusion import reference

LESSON = "course/06_sampling_fusion/b_rules_and_draws.ipynb"


def penalize(logits, output, repetition, frequency, presence):
    return rows.penalised(logits, output, (repetition, frequency, presence))


def survivors(logits, temperature, top_k, top_p, min_p):
    return rows.survivors(logits, temperature, (top_k, top_p, min_p))


def _row(rng, n, spread=2.0):
    return (spread * rng.standard_normal(n)).round(3)


def _penalised(rng, vocabulary, longest):
    history = [int(t) for t in rng.integers(0, vocabulary, between(rng, longest // 2, longest))]
    history += history[:2] * 3  # some tokens many times
    return (
        _row(rng, vocabulary),
        history,
        log_uniform(rng, 0.5, 2.5),
        float(rng.uniform(-1, 1)),
        float(rng.uniform(-0.6, 1)),
    )


def _filters(rng, n):
    """Each filter from its whole range, now and then off."""
    k = 0 if rng.random() < 0.3 else between(rng, 1, n + 2)
    p = 1.0 if rng.random() < 0.3 else float(rng.uniform(0.2, 0.99))
    m = 0.0 if rng.random() < 0.3 else log_uniform(rng, 0.01, 0.6)
    return log_uniform(rng, 0.3, 3.0), k, p, m


def _heavy_tail(rng):
    """Three tokens near the best, and a crowd of which min-p at 0.3 leaves nothing, though it holds more than they do."""
    x = np.concatenate((3.0 - 0.05 * np.arange(3), rng.uniform(0.9, 1.1, 30)))
    return rng.permutation(x), 1.0, 0, float(rng.uniform(0.56, 0.62)), 0.3


def _tied(rng, k=0, p=1.0):
    """Hundreds of tokens of three values: whole crowds are equal, wherever the border falls."""
    return rng.integers(0, 3, between(rng, 150, 300)).astype(float), 1.0, k, p, 0.0


def _evenly(rng):
    """A crowd at every height: a temperature off by a hundredth moves min-p's edge past one of them."""
    return (
        rng.permutation(np.linspace(0, 6, 400)),
        log_uniform(rng, 0.4, 1.6),
        0,
        1.0,
        float(rng.uniform(0.04, 0.12)),
    )


def _borders(rng):
    """Numbers that are exact, so that < and <= differ."""
    level = float(rng.integers(-4, 5))
    return [
        Call((np.full(4, level), 1.0, 0, between(rng, 1, 3) / 4, 0.0), "a mass of p exactly"),
        Call((level - np.array([0.0, 0.0, 1.0]), 1.0, 0, 1.0, 1.0), "a weight of min-p exactly"),
        Call((np.full(4, level), 1.0, 2, 1.0, 0.0), "ties at the border of top-k"),
    ]


def _each_filter_alone(rng):
    x = _row(rng, between(rng, 20, 40), 1.0)
    return [
        Call((x, 1.0, between(rng, 3, 9), 1.0, 0.0), "top-k alone"),
        Call((x, log_uniform(rng, 1.5, 3.0), 0, float(rng.uniform(0.4, 0.7)), 0.0), "top-p alone"),
        *(Call(_evenly(rng), "min-p alone") for _ in range(3)),
        Call(
            (x, log_uniform(rng, 1.5, 3.0), between(rng, 8, 12), float(rng.uniform(0.4, 0.6)), 0.0),
            "top-p of what top-k kept",
        ),
        Call(_heavy_tail(rng), "min-p after top-p"),
    ]


def _each_time(x, output, r, f, p):
    count = np.bincount(np.asarray(output, int), minlength=len(x))
    return np.where(x > 0, x / r**count, x * r**count) - f * count - p * (count > 0)


PENALIZE = NumpyQuestion(
    id="sampling_fusion.penalize",
    notebook="concepts",
    asks="penalize(logits, output, repetition, frequency, presence): the logits after the three penalties on the tokens of `output`",
    entry="penalize",
    parts=(Part("values", 3, "calls"),),
    reference=penalize,
    rtol=1e-6,
    atol=1e-6,
    public=(
        Call((np.array([2.0, -1.0, 0.5, 3.0]), [0, 1, 1], 2.0, 0.5, 0.25)),
        Call((np.array([1.0, 1.0, 1.0]), [], 1.5, 1.0, 1.0), "an empty history"),
    ),
    hidden=lambda rng: (
        [Call(_penalised(rng, between(rng, 8, 30), 20)) for _ in range(5)]
        + [
            Call(_penalised(rng, 50, 200), "a long history"),
            Call(
                (np.array([-3.0, -2.0, 0.0]), [0, 0, 2], log_uniform(rng, 1.1, 2), 0.0, 0.0),
                "negative logits",
            ),
            Call(
                (np.array([1.0, -np.inf, -2.0]), [0, 1, 1], log_uniform(rng, 1.1, 2), 0.3, 0.2),
                "a token that was banned",
            ),
        ]
    ),
    where=f'{LESSON}, "The rules, in order"',
    hints=(
        "Which tokens were there at all, and how often each? np.bincount answers both.",
        "Repetition first: a positive logit is divided by it, a negative one multiplied, so that both go down.",
        "x = np.where(seen, np.where(x > 0, x / repetition, x * repetition), x) - frequency * counts - presence * seen",
    ),
    mistakes=(
        Mistake(
            "always divides",
            "a negative logit divided by the penalty goes up: multiply it instead",
            wrong=lambda x, o, r, f, p: (
                np.where(np.bincount(o, minlength=len(x)) > 0, x / r, x)
                - f * np.bincount(o, minlength=len(x))
                - p * (np.bincount(o, minlength=len(x)) > 0)
            ),
        ),
        Mistake(
            "presence by count",
            "presence is taken off once, frequency once for each time",
            wrong=lambda x, o, r, f, p: penalize(x, o, r, f + p, 0.0),
        ),
        Mistake(
            "subtracted first",
            "the repetition penalty comes before the other two",
            wrong=lambda x, o, r, f, p: penalize(penalize(x, o, 1.0, f, p), o, r, 0.0, 0.0),
        ),
        Mistake(
            "frequency once",
            "frequency is taken off once for each time that a token came",
            wrong=lambda x, o, r, f, p: penalize(x, sorted(set(o)), r, f, p),
        ),
        Mistake(
            "repetition each time",
            "the repetition penalty acts once, however often a token came",
            wrong=lambda x, o, r, f, p: _each_time(x, o, r, f, p),
        ),
        Mistake(
            "presence for all",
            "presence is taken off tokens of the history alone",
            wrong=lambda x, o, r, f, p: penalize(x, o, r, f, 0.0) - p,
        ),
    ),
)

SURVIVORS = NumpyQuestion(
    id="sampling_fusion.survivors",
    notebook="concepts",
    asks="survivors(logits, temperature, top_k, top_p, min_p): which tokens may still be drawn (True), after top-k, top-p and min-p",
    entry="survivors",
    parts=(Part("values", 4, "calls"),),
    reference=survivors,
    public=(
        Call((np.array([3.0, 2.0, 1.0, 0.0]), 1.0, 2, 1.0, 0.0), "top-k alone"),
        Call((np.array([3.0, 2.0, 1.0, 0.0]), 1.0, 0, 0.9, 0.0), "top-p alone; 0 turns top-k off"),
        Call((np.array([0.0, 1.0, 2.0, 2.0]), 0.5, 3, 0.8, 0.1), "all three"),
    ),
    hidden=lambda rng: (
        [Call((x := _row(rng, between(rng, 3, 30)), *_filters(rng, len(x)))) for _ in range(6)]
        + _each_filter_alone(rng)
        + [
            *(Call(_tied(rng, k=between(rng, 20, 40)), "many ties at the border of top-k") for _ in range(3)),
            Call(_tied(rng, p=float(rng.uniform(0.2, 0.4))), "many ties at the border of top-p"),
            Call((np.array([1.0, 2.0, -np.inf, 0.5]), 1.0, 0, 0.95, 0.0), "a token that was banned"),
            Call(
                (np.array([1.0, -np.inf, 0.5, -np.inf]), log_uniform(rng, 0.5, 2), 0, 1.0, 0.0),
                "a banned token with the filters off",
            ),
            Call(
                (
                    np.where(rng.random(40) < 0.6, -np.inf, _row(rng, 40, 1.0)) + 0.0,
                    1.0,
                    39,
                    float(rng.uniform(0.3, 0.6)),
                    0.0,
                ),
                "fewer tokens than top-k asks for",
            ),
            Call((np.array([9.0, 0.0, 0.0]), 1.0, 0, 0.01, 0.0), "one token always stays"),
            Call((np.array([1.0, 2.0, 1.5]), 1.0, 0, 0.0, 0.0), "top-p of 0"),
            *_borders(rng),
            Call((np.array([0.0, -45.0]), 1.0, 0, 1.0, 0.0), "top-p off, and a token too light for the sum"),
            Call((np.array([5.0, 1.0, 0.0]), 1.0, 99, 1.0, 0.0), "more asked for than there are"),
            Call((np.array([3.0, 2.0, 1.0, 0.0]), 1.0, 2, 0.7, 0.0), "top-p of what top-k kept"),
        ]
    ),
    where=f'{LESSON}, "Who may still be drawn"',
    hints=(
        "Rank the tokens first: by logit, of equals the lower id; -inf takes no part.",
        "Weights are exp((x - best) / T). Top-p looks at the mass ranked before a token, within what top-k kept: it stays while that is below p.",
        "keep = rank < k; keep &= before < top_p * weight[keep].sum(); keep &= weight >= min_p  (the best has weight 1)",
    ),
    mistakes=(
        Mistake(
            "ids",
            "True or False is asked for each token, and these are the survivors' ids: flags = np.zeros(n, bool), then flags[ids] = True",
            wrong=lambda x, t, k, p, m: np.flatnonzero(survivors(x, t, k, p, m)),
        ),
        *(Mistake(name, sentence, wrong=stays) for name, (sentence, stays) in filters.READ_OTHERWISE.items()),
        Mistake(
            "top-p never off",
            "top_p = 1 turns top-p off, for tokens too that are too light to show in the sum",
            wrong=filters.never_off,
        ),
        Mistake(
            "nothing stays", "one token always stays, however small top_p is", wrong=filters.none_at_zero
        ),
        Mistake(
            "banned tokens stay",
            "a logit of -inf takes no part, even where all filters are off",
            wrong=filters.banned_stay,
        ),
        Mistake(
            "unstable order",
            "of equals the lower id ranks first: np.argsort needs kind='stable'",
            wrong=filters.unstable,
        ),
    ),
)


def _share(x, t, flags):
    return float(np.exp(reference.log_softmax(np.asarray(x, float), t))[flags].sum())


SHARES = (
    "crossing token dropped",
    "top-p of everything",
    "no top-k",
    "no top-p",
    "no min-p",
    "min-p of the row",
    "min-p first",
    "off read as one",
    "ties all stay",
    "ties together",
    "at most p",
    "above min-p",
)

CHAIN = NumpyQuestion(
    id="sampling_fusion.kept_share",
    notebook="concepts",
    asks="kept_share(logits, temperature, top_k, top_p, min_p): the probability mass that the survivors held before the filter",
    entry="kept_share",
    parts=(Part("values", 1, "calls"),),
    reference=lambda x, t, k, p, m: _share(x, t, survivors(x, t, k, p, m)),
    public=(
        Call((np.array([3.0, 2.0, 1.0, 0.0]), 1.0, 2, 1.0, 0.0)),
        Call((np.array([3.0, 2.0, 1.0, 0.0]), 2.0, 0, 0.8, 0.0), "a temperature"),
    ),
    hidden=lambda rng: (
        [Call((x := _row(rng, between(rng, 12, 30)), *_filters(rng, len(x)))) for _ in range(5)]
        + _each_filter_alone(rng)
        + _borders(rng)
        + [Call((np.array([1.0, 2.0, 1.5]), 1.0, 0, 0.0, 0.0), "top-p of 0")]
    ),
    where=f'{LESSON}, "Who may still be drawn"',
    hints=(
        "It is the softmax at temperature T, summed over the survivors: what they held before the others went.",
        "Rank the weights exp((x - best) / T), find the ranks that survive as in `survivors`, add those up, and divide by the sum of all.",
        "ranked[keep].sum() / weight.sum(), with keep = rank < k, then before < top_p * ranked[keep].sum(), then ranked >= min_p",
    ),
    mistakes=(
        Mistake(
            "after the filter",
            "the share is of the whole row's mass, not of what the filter left",
            wrong=lambda x, t, k, p, m: 1.0,
        ),
        Mistake(
            "of what top-k kept",
            "the share is of the whole row's mass, not of what top-k kept: divide by the sum of all weights",
            wrong=lambda x, t, k, p, m: (
                _share(x, t, survivors(x, t, k, p, m)) / _share(x, t, survivors(x, t, k, 1.0, 0.0))
            ),
        ),
        Mistake(
            "no temperature",
            "the temperature belongs to the weights, and to the share",
            wrong=lambda x, t, k, p, m: _share(x, 1.0, survivors(x, 1.0, k, p, m)),
        ),
        Mistake(
            "a count",
            "it is a share of the mass, not of the tokens",
            wrong=lambda x, t, k, p, m: survivors(x, t, k, p, m).mean(),
        ),
        *(
            Mistake(
                name, sentence, wrong=lambda x, t, k, p, m, stays=stays: _share(x, t, stays(x, t, k, p, m))
            )
            for name, (sentence, stays) in filters.READ_OTHERWISE.items()
            if name in SHARES
        ),
        Mistake(
            "nothing stays",
            "one token always stays, however small top_p is",
            wrong=lambda x, t, k, p, m: _share(x, t, filters.none_at_zero(x, t, k, p, m)),
        ),
    ),
)

QUESTIONS = (PENALIZE, SURVIVORS, CHAIN)


# Answers that hold for some calls alone.
SHORTCUTS = {
    PENALIZE.id: {
        "histories up to 40": lambda x, o, r, f, p: penalize(x, o[:40], r, f, p),
        "repetition from a table": lambda x, o, r, f, p: penalize(
            x, o, nearest_of(0.5, 1.0, 1.3, 2.0)(r), f, p
        ),
    },
    SURVIVORS.id: {
        "temperature from a table": lambda x, t, k, p, m: survivors(x, known_temperature(t), k, p, m),
        "k up to 8": lambda x, t, k, p, m: survivors(x, t, min(k, 8), p, m),
    },
    CHAIN.id: {
        "temperature from a table": lambda x, t, k, p, m: _share(
            x, known_temperature(t), survivors(x, known_temperature(t), k, p, m)
        )
    },
}
