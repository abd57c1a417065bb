"""The rules in numpy, one row at a time, with their edges: what the concepts lab asks."""

import numpy as np

from grader.checks._sampling_rows import gumbel_of, survivors
from grader.questions import Call, Mistake, NumpyQuestion, Part
from kernels.sampling_fusion import reference
from kernels.sampling_fusion.requests import Requests

LESSON = "course/06_sampling_fusion.ipynb"


def penalize(logits, output, repetition, frequency, presence):
    row = Requests.of(
        1, len(logits), outputs=[output], repetition=repetition, frequency=frequency, presence=presence
    )
    return reference.processed(logits, row, 0)


def gumbel_pick(logits, temperature, u):
    return int(np.argmax(np.asarray(logits, np.float64) / temperature + gumbel_of(u)))


def inverse_pick(weights, u):
    before = np.cumsum(weights) - weights
    return int(np.flatnonzero((weights > 0) & (before <= u * np.sum(weights)))[-1])


def crossing_dropped(x, t, k, p, m):
    return _nucleus(x, t, k, p, m, lambda before, weight, limit: before + weight <= limit)


def at_most(x, t, k, p, m):
    return _nucleus(x, t, k, p, m, lambda before, weight, limit: before <= limit)


def _nucleus(x, t, k, p, m, stays):
    """The survivors where top-p keeps what `stays`, and the first."""
    ranking = reference.Ranking.of(np.asarray(x, np.float64), t)
    keep = reference.kept(ranking, k, 1.0, m)
    limit = p * ranking.weight[: k or None].sum()
    keep &= stays(ranking.before, ranking.weight, limit) | (np.arange(keep.size) == 0) | (p >= 1)
    flags = np.zeros(len(x), bool)
    flags[ranking.token[keep]] = True
    return flags


def _row(rng, n, spread=2.0):
    return (spread * rng.standard_normal(n)).round(3)


def _close(rng, n):
    """Logits made of the noise, so that the sums lie close together and each little change picks another token."""
    u, temperature = rng.uniform(1e-3, 1 - 1e-3, n), float(rng.choice([0.3, 0.7, 2.0]))
    return temperature * (0.02 * rng.permutation(n) - gumbel_of(u)), temperature, u


def _history(rng, vocabulary, length):
    return [int(t) for t in rng.integers(0, vocabulary, length)]


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
    hidden=lambda rng: [Call((_row(rng, 12), _history(rng, 12, int(rng.integers(1, 20))), float(rng.choice([0.5, 1.0, 1.3, 2.0])), float(rng.choice([0.0, 0.25, -0.5])), float(rng.choice([0.0, 0.75])))) for _ in range(6)]
    + [Call((np.array([-3.0, -2.0, 0.0]), [0, 0, 2], 1.25, 0.0, 0.0), "negative logits")],
    where=f'{LESSON}, "The rules, in order"',
    hints=(
        "Which tokens were there at all, and how often each? np.bincount answers both.",
        "Repetition first: a positive logit is divided by it, a negative one multiplied, so that both go down.",
        "x = np.where(seen, np.where(x > 0, x / repetition, x * repetition), x) - frequency * counts - presence * seen",
    ),
    mistakes=(
        Mistake("always divides", "a negative logit divided by the penalty goes up: multiply it instead", wrong=lambda x, o, r, f, p: np.where(np.bincount(o, minlength=len(x)) > 0, x / r, x) - f * np.bincount(o, minlength=len(x)) - p * (np.bincount(o, minlength=len(x)) > 0)),
        Mistake("presence by count", "presence is taken off once, frequency once for each time", wrong=lambda x, o, r, f, p: penalize(x, o, r, f + p, 0.0)),
        Mistake("subtracted first", "the repetition penalty comes before the other two", wrong=lambda x, o, r, f, p: penalize(penalize(x, o, 1.0, f, p), o, r, 0.0, 0.0)),
    ),
)  # fmt: skip

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
    hidden=lambda rng: [Call((_row(rng, int(rng.integers(3, 30))), float(rng.choice([0.5, 1.0, 1.5])), int(rng.integers(0, 8)), float(rng.choice([0.3, 0.7, 0.9, 1.0])), float(rng.choice([0.0, 0.05, 0.3])))) for _ in range(8)]
    + [
        Call((np.array([1.0, 1.0, 1.0, 1.0]), 1.0, 2, 1.0, 0.0), "ties at the border of top-k"),
        Call((np.array([1.0, 2.0, -np.inf, 0.5]), 1.0, 0, 0.95, 0.0), "a token that was banned"),
        Call((np.array([9.0, 0.0, 0.0]), 1.0, 0, 0.01, 0.0), "one token always stays"),
        Call((np.array([1.0, 1.0, 1.0, 1.0]), 1.0, 0, 0.5, 0.0), "a mass of p exactly"),
        Call((np.array([5.0, 1.0, 0.0]), 1.0, 99, 1.0, 0.0), "more asked for than there are"),
        Call((np.array([3.0, 2.0, 1.0, 0.0]), 1.0, 2, 0.7, 0.0), "top-p of what top-k kept"),
        Call((np.array([3.0, 2.0, 1.0, 0.0]), 2.0, 0, 0.6, 0.3), "a high temperature"),
    ],
    where=f'{LESSON}, "Who may still be drawn"',
    hints=(
        "Rank the tokens first: by logit, of equals the lower id; -inf takes no part.",
        "Weights are exp((x - best) / T). Top-p looks at the mass ranked before a token, within what top-k kept: it stays while that is below p.",
        "keep = rank < k; keep &= before < top_p * weight[keep].sum(); keep &= weight >= min_p  (the best has weight 1)",
    ),
    mistakes=(
        Mistake("crossing token dropped", "the token that crosses p stays: compare the mass before it, not with it", wrong=crossing_dropped),
        Mistake("at most p", "a token stays while the mass before it is below p; where it is p exactly, it goes", wrong=at_most),
        Mistake("no temperature", "the weights are taken without the temperature", wrong=lambda x, t, k, p, m: survivors(x, 1.0, k, p, m)),
        Mistake("top-p of everything", "top-p's mass is that of what top-k kept, not of the whole row", wrong=lambda x, t, k, p, m: survivors(x, t, k, 1.0, m) & survivors(x, t, 0, p, m)),
    ),
)  # fmt: skip


DRAWS = NumpyQuestion(
    id="sampling_fusion.gumbel_pick",
    notebook="concepts",
    asks="gumbel_pick(logits, temperature, u): the token with the largest logit / T + Gumbel noise, made of the uniform numbers u",
    entry="gumbel_pick",
    parts=(Part("values", 2, "calls"),),
    reference=gumbel_pick,
    public=(Call((np.array([1.0, 2.0, 3.0]), 1.0, np.array([0.9, 0.5, 0.1]))), Call((np.array([0.0, 1.0]), 0.5, np.array([0.9, 0.5])), "a temperature")),
    hidden=lambda rng: [Call(_close(rng, n)) for n in rng.integers(2, 40, 10)],
    where=f'{LESSON}, "Two ways to draw"',
    hints=(
        "Gumbel noise is -log(-log(u)); where is it large?",
        "Add one noise number to each scaled logit and take the place of the largest sum.",
        "int(np.argmax(logits / temperature - np.log(-np.log(u))))",
    ),
    mistakes=(
        Mistake("noise scaled", "the temperature divides the logits alone, not the noise", wrong=lambda x, t, u: int(np.argmax((x + gumbel_of(u)) / t))),
        Mistake("sign", "the sign of the noise is turned round", wrong=lambda x, t, u: int(np.argmax(x / t - gumbel_of(u)))),
    ),
)  # fmt: skip

INVERSE = NumpyQuestion(
    id="sampling_fusion.inverse_pick",
    notebook="concepts",
    asks="inverse_pick(weights, u): the last token whose predecessors hold at most u of the whole weight; weight 0 is never drawn",
    entry="inverse_pick",
    parts=(Part("values", 2, "calls"),),
    reference=inverse_pick,
    public=(Call((np.array([1.0, 2.0, 1.0]), 0.8)), Call((np.array([0.0, 3.0, 0.0, 1.0]), 0.8), "zeros between")),
    hidden=lambda rng: [Call((rng.random(int(rng.integers(1, 30))), float(rng.random()))) for _ in range(8)]
    + [Call((np.array([2.0, 1.0, 0.0]), 0.999999), "u near 1"), Call((np.array([0.0, 1.0]), 0.0), "u of 0")],
    where=f'{LESSON}, "Two ways to draw"',
    hints=(
        "Lay the weights end to end; u says how far along to look.",
        "before = cumulative sum without the token itself; a token of weight 0 has no length to be hit.",
        "np.flatnonzero((weights > 0) & (before <= u * weights.sum()))[-1]",
    ),
    mistakes=(
        Mistake("weight 0", "a token of weight 0 has no length and is never drawn, at the ends neither", wrong=lambda w, u: int(np.flatnonzero(np.cumsum(w) >= u * np.sum(w))[0])),
        Mistake("not the whole weight", "u is a share of the whole weight, which need not be 1", wrong=lambda w, u: int(np.flatnonzero((w > 0) & (np.cumsum(w) - w <= u))[-1])),
        Mistake("mass with it", "the mass before a token decides, not the mass with it", wrong=lambda w, u: int(np.flatnonzero((w > 0) & (np.cumsum(w) <= u * np.sum(w)))[-1])),
    ),
)  # fmt: skip


def _share(x, t, flags):
    return float(np.exp(reference.log_softmax(np.asarray(x, float), t))[flags].sum())


CHAIN = NumpyQuestion(
    id="sampling_fusion.kept_share",
    notebook="concepts",
    asks="kept_share(logits, temperature, top_k, top_p, min_p): the probability mass that the survivors held before the filter",
    entry="kept_share",
    parts=(Part("values", 1, "calls"),),
    reference=lambda x, t, k, p, m: _share(x, t, survivors(x, t, k, p, m)),
    public=(Call((np.array([3.0, 2.0, 1.0, 0.0]), 1.0, 2, 1.0, 0.0)), Call((np.array([3.0, 2.0, 1.0, 0.0]), 2.0, 0, 0.8, 0.0), "a temperature")),
    hidden=lambda rng: [Call((_row(rng, 20), float(rng.choice([0.5, 1.0])), int(rng.integers(1, 8)), float(rng.choice([0.5, 0.9])), 0.02)) for _ in range(5)],
    where=f'{LESSON}, "Who may still be drawn"',
    hints=(
        "It is the softmax at temperature T, summed over the survivors: what they held before the others went.",
        "Rank the weights exp((x - best) / T), find the ranks that survive as in `survivors`, add those up, and divide by the sum of all.",
        "ranked[keep].sum() / weight.sum(), with keep = rank < k, then before < top_p * ranked[keep].sum(), then ranked >= min_p",
    ),
    mistakes=(
        Mistake("after the filter", "the share is of the whole row's mass, not of what the filter left", wrong=lambda x, t, k, p, m: 1.0),
        Mistake("no temperature", "the temperature belongs to the weights, and to the share", wrong=lambda x, t, k, p, m: _share(x, 1.0, survivors(x, 1.0, k, p, m))),
        Mistake("a count", "it is a share of the mass, not of the tokens", wrong=lambda x, t, k, p, m: survivors(x, t, k, p, m).mean()),
    ),
)  # fmt: skip

QUESTIONS = (PENALIZE, SURVIVORS, DRAWS, INVERSE, CHAIN)
