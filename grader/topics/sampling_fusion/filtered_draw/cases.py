"""Draw the inputs of *filtered draw*, and set its budgets."""

from functools import partial

import numpy as np

from grader.questions import Budget, Case
from grader.questions.draws import between, odd, spread
from grader.questions.work import work
from grader.topics.sampling_fusion.shared import SECTOR, row_by_row, size
from grader.topics.sampling_fusion.shared_logits import MANY_EQUAL, MOST_FAR_BELOW, TINY
from grader.topics.sampling_fusion.shared_rows import (
    A_BIT_APART,
    ANYWHERE,
    BORDER,
    CROWDED,
    FAINT_TAIL,
    JUST,
    MARGIN,
    TRIES,
    factors,
    gumbel_of,
    in_turn,
    neighbours,
    noise,
    plain_inputs,
    ranks,
    seeds,
    sometimes,
    telling_seeds,
    uniform,
)
from kernels.sampling_fusion import reference


def hidden_filtered(rng: np.random.Generator) -> list[Case]:
    return [
        Case(size(8, odd(rng, 201, 1801)), "fp32", kind="an odd vocabulary"),
        Case(size(6, between(rng, 250, 350)), "bf16", kind="bf16 logits"),
        Case(size(6, 7), "fp32", kind="a vocabulary of seven"),
        Case(size(8, between(rng, 900, 1100)), "fp32", values="large", kind="large logits"),
        Case(size(64, 12), "fp32", values="levels", kind="equal logits at the border"),
        Case(size(64, 12), "fp32", values="few tokens", kind="many rows of few tokens"),
        Case(size(32, between(rng, 120, 160)), "fp32", values="many kept", kind="many tokens kept"),
        Case(size(32, 50), "fp32", values="mostly banned", kind="fewer tokens than top-k asks for"),
        Case(size(32, 60), "fp32", values="a heavy tail", kind="a crowd that min-p rules out"),
        Case(size(32, 100), "fp32", layout={"logits": "transposed"}, kind="transposed logits"),
        Case(size(12, between(rng, 80, 120)), "fp32", layout=spread(rng, "logits"), kind="no stride of 1"),
        Case(size(24, 200), "fp32", values="fine", kind="logits that fp16 cannot tell apart"),
        Case(size(8, 50), "fp32", values="banned", kind="logits of -inf"),
        Case(size(64, 16), "fp32", values="exact borders", kind="exactly p, and exactly min-p"),
        Case(
            size(8, between(rng, 20, 40)), "fp32", values="one low value", kind="equal logits far below zero"
        ),
        Case(size(8, between(rng, 60, 90)), "fp32", values="far below zero", kind="logits far below zero"),
        Case(size(16, between(rng, 1500, 2048)), "fp32", values=MOST_FAR_BELOW, kind=MOST_FAR_BELOW),
        Case(size(6, between(rng, 1900, 2048)), "fp32", values=FAINT_TAIL, kind=FAINT_TAIL),
        Case(size(32, 16), "fp32", values="zeros", kind="zeros of both signs"),
        Case(size(2, 2048), "fp32", values="many kept", kind="the largest vocabulary"),
        Case(size(9, between(rng, 1600, 2000)), "fp32", values=LAST_BITS, kind="borders between many tokens"),
        *(
            Case(size(24, v), "fp32", values=ANYWHERE, kind="borders anywhere in a row")
            for v in (between(rng, 1800, 2048), between(rng, 30, 300))
        ),
        Case(size(16, between(rng, 60, 90)), "fp32", values=TINY, kind="logits next to zero"),
        Case(size(64, between(rng, 16, 40)), "fp32", values=A_BIT_APART, kind="logits one bit apart"),
        Case(size(12, 2048), "fp32", values="the last one wins", kind="filters that are off"),
        Case(size(128, 24), "fp32", values="near borders", kind="a mass close to p"),
        Case(size(128, 24), "fp32", values="near min-p", kind="a weight close to min-p"),
        Case(size(6, between(rng, 200, 400)), "fp32", values="equal", kind="equal logits"),
        Case(size(6, between(rng, 1500, 2048)), "fp32", values=MANY_EQUAL, kind=MANY_EQUAL),
        Case(size(16, between(rng, 1500, 2048)), "fp32", values=CROWDED, kind=CROWDED),
    ]


def metered_filtered(rng: np.random.Generator) -> Case:
    return Case(size(4, SECTOR * between(rng, 200, 255)), "fp32", kind="the metered size")


NEAR = 2 * BORDER  # and one this far from it is surely in or out
NEAR_LEAST = 4e-5  # the same of min-p, relative to it, where logits are small
EDGES = ("few tokens", "levels")
MORE_THAN_A_BYTE = 300  # tokens that stay
BORDERS = ("exact borders", "near borders", "near min-p")


def near_borders(inputs: dict, rng: np.random.Generator) -> dict:
    """Top-p alone, a hair above or below the share of mass before some token: sums of 16 bits put it on the other side."""
    b, _ = inputs["logits"].shape
    top_p = np.empty(b)
    for i in range(b):
        ranking = reference.Ranking.of(
            inputs["logits"][i].astype(np.float64), float(inputs["temperature"][i])
        )
        share = ranking.before / ranking.weight.sum()
        top_p[i] = beside(share[between(rng, 2, share.size - 2)], above=bool(i // 2 % 2))
    off = {"top_k": np.zeros(b, np.int32), "min_p": np.zeros(b, np.float32)}
    return inputs | off | {"top_p": top_p.astype(np.float32)}


def near_min_p(inputs: dict, rng: np.random.Generator) -> dict:
    """Min-p alone, a hair above or below the weight of some token."""
    b, _ = inputs["logits"].shape
    min_p = np.empty(b)
    for i in range(b):
        ranking = reference.Ranking.of(
            inputs["logits"][i].astype(np.float64), float(inputs["temperature"][i])
        )
        weight = ranking.weight[between(rng, 2, ranking.weight.size - 2)] / ranking.weight[0]
        min_p[i] = weight * (1 + (NEAR_LEAST if i // 2 % 2 else -NEAR_LEAST))
    off = {"top_k": np.zeros(b, np.int32), "top_p": np.ones(b, np.float32)}
    return inputs | off | {"min_p": min_p.astype(np.float32)}


def last_one_wins(inputs: dict, rng: np.random.Generator) -> dict:
    """Rows whose winner is the least likely token of all: so little mass that an fp32 sum over the row may not notice it.

    All other scores are close together, so a token's weight is small where its noise is large. Of a few seeds, the seed with
    the largest noise is taken, and its token wins by far.
    """
    b, v = inputs["logits"].shape
    chosen = np.empty(b, np.int32)
    for i in range(b):
        tries = seeds(rng, TRIES)
        chosen[i] = tries[noise(tries[:, None], v).max(1).argmax()]
    g, t = noise(chosen[:, None], v), inputs["temperature"].astype(np.float64)[:, None]
    scores = MARGIN * ranks(rng.random((b, v))) / v + (g == g.max(1, keepdims=True))
    return inputs | {"seed": chosen, "logits": (t * (scores - g)).astype(np.float32)}


SPREAD = 0.02  # of the faint tokens' scores
LOOKED_AT = 1 << 16  # seeds, those with the least noise of the best token first
FAINT = 12.0  # below the best token's score, where a weight is less than half of 2**-16


def faint_tail(inputs: dict, rng: np.random.Generator) -> dict:
    """Draw rows of one likely token and thousands of faint ones, whose weights add up to a hundredth. Noise lets a faint token
    win. A top-p ends next to it, and keeps it in every other row."""
    b, v = inputs["logits"].shape
    x, told, top_p = np.empty((b, v)), np.empty(b, np.int32), np.empty(b)
    for i, t in enumerate(inputs["temperature"].astype(np.float64)):
        best = rng.integers(v)
        tries = rng.integers(-(2**31), 2**31, LOOKED_AT).astype(np.int32)
        tries = tries[np.argsort(gumbel_of(uniform(tries, best)))]
        told[i], wins, second = next(filter(None, map(partial(tail_noise, v, best), tries)))
        scores = -FAINT - SPREAD * rng.random(v)
        scores[best], scores[wins], scores[second] = 0, -FAINT - SPREAD / 2, -FAINT
        x[i] = t * scores
        top_p[i] = top_p_next_to(x[i], t, wins, i % 2 == 1)
    off = {"top_k": np.zeros(b, np.int32), "min_p": np.zeros(b, np.float32)}
    return inputs | off | {"logits": x.astype(np.float32), "seed": told, "top_p": top_p.astype(np.float32)}


def top_p_next_to(logits: np.ndarray, t: float, token: int, stays: bool) -> float:
    """Return a top-p a hair above or below the share of mass before a token, which then stays or goes."""
    ranking = reference.Ranking.of(logits.astype(np.float32).astype(np.float64), t)
    share = ranking.before / ranking.weight.sum()
    return beside(share[int(np.flatnonzero(ranking.token == token)[0])], above=stays)


def beside(share: float, above: bool) -> float:
    """Return a top-p next to a share of the mass, but never one below 0."""
    return share + NEAR if above or share <= NEAR else share - NEAR


def crowded(inputs: dict, rng: np.random.Generator) -> dict:
    """Draw rows of tokens of nearly one weight. A top-p ends next to the one that noise lets win, and keeps it in every other
    row, so that one token more or less shows."""
    b, v = inputs["logits"].shape
    x, told, top_p = np.empty((b, v)), np.empty(b, np.int32), np.empty(b)
    for i, t in enumerate(inputs["temperature"].astype(np.float64)):
        for seed in seeds(rng, TRIES):
            g = noise(int(seed), v)
            first, second, third = np.argsort(g)[:-4:-1]
            if min(-np.diff(g[[first, second, third]])) > 2 * JUST:
                break
        scores = SPREAD * rng.random(v)
        scores[first] = SPREAD * rng.uniform(0.2, 0.8)
        x[i], told[i] = t * scores, seed
        top_p[i] = top_p_next_to(x[i], t, first, i % 2 == 1)
    off = {"top_k": np.zeros(b, np.int32), "min_p": np.zeros(b, np.float32)}
    return inputs | off | {"logits": x.astype(np.float32), "seed": told, "top_p": top_p.astype(np.float32)}


def tail_noise(vocabulary: int, best: int, seed: int) -> tuple[int, int, int] | None:
    """Return (seed, the faint tokens of most noise) if the first of these wins by far, and if without it the next does."""
    scores = noise(int(seed), vocabulary) - FAINT
    scores[best] += FAINT
    first, second, third = np.argsort(scores)[:-4:-1]
    if first == best or min(-np.diff(scores[[first, second, third]])) < 2 * JUST:
        return None
    faint = third if second == best else second
    return int(seed), int(first), int(faint)


LAST_BITS = "the last bits"  # three kinds of rows, in turn: see below
FEW = 1.5  # equal tokens whose mass is the smallest top-p, which keeps two
AHEAD = 2.0  # of the best token, whose score nothing comes near


def last_bits(inputs: dict, rng: np.random.Generator) -> dict:
    """Wide rows where a border must be exact, one filter each: the k-th logit next to others that differ from it in their
    last bits, a top-p just below 1 that cuts off a token that would win, and a small top-p that keeps some equals."""
    b, v = inputs["logits"].shape
    which, t = np.arange(b) % 3, inputs["temperature"].astype(np.float64)[:, None]
    g = noise(inputs["seed"][:, None], v)
    near_one = t * (MARGIN * ranks(rng.random((b, v))) + AHEAD * (g == g.max(1, keepdims=True)) - g)
    steps = np.float32(1) + rng.integers(0, 200, (b, v)).astype(np.float32) * np.finfo(np.float32).eps
    x = np.select([which[:, None] == 0, which[:, None] == 1], [steps, near_one], 1.0)
    return inputs | {
        "logits": x.astype(np.float32),
        "top_k": np.where(which == 0, rng.integers(20, 60, b), 0).astype(np.int32),
        "top_p": np.select(
            [which == 0, which == 1],
            [1.0, rng.uniform(0.9990, 0.9996, b)],
            factors(rng, min(FEW / v, 0.008), 0.018, b),
        ).astype(np.float32),
        "min_p": np.zeros(b, np.float32),
    }


def a_bit_apart(inputs: dict, rng: np.random.Generator) -> dict:
    """Rows of neighbouring fp32 numbers, each twice and in any order, of which top-k or top-p keeps some: a search that
    leaves out one bit takes four of them for equal. Top-p ends in the middle of a token's mass, far from any rounding. In half
    of the rows a token lies far below all others, so that a search begins far away."""
    b, v = inputs["logits"].shape
    stay, by_mass = rng.integers(2, v - 2, b), in_turn(rng, (0, 1), b) == 1
    x, far = neighbours(rng, b, v), in_turn(rng, (0, 1), b)
    at = np.flatnonzero(far)
    x[at, rng.integers(v, size=at.size)] = -(10.0 ** rng.uniform(3, 30, at.size))
    return inputs | {
        "logits": x,
        "top_k": np.where(by_mass, 0, stay).astype(np.int32),
        "top_p": np.where(by_mass, (stay - 0.5) / (v - far), 1.0).astype(np.float32),
        "min_p": np.zeros(b, np.float32),
    }


def anywhere(inputs: dict, rng: np.random.Generator) -> dict:
    """One filter a row, with its border at any rank or any weight. The best noise but one has the last token that stays, and
    the best has the first that goes, so that a border elsewhere draws another token."""
    b, v = inputs["logits"].shape
    g, t = noise(inputs["seed"][:, None], v), inputs["temperature"].astype(np.float64)
    which, x = np.arange(b) % 3, np.empty((b, v), np.float32)
    columns = {
        "top_k": np.zeros(b, np.int32),
        "top_p": np.ones(b, np.float32),
        "min_p": np.zeros(b, np.float32),
    }
    stays, least = borders(rng, v, b), least_weights(rng, b)
    for i, last in enumerate(stays):
        by_noise = np.argsort(-g[i])
        order = rng.permutation(by_noise[2:])
        order = np.concatenate((order[: last - 1], by_noise[[1, 0]], order[last - 1 :]))
        x[i, order] = np.float32(1) - np.arange(v) * np.finfo(np.float32).eps
        if which[i] == 0:
            columns["top_k"][i] = last
        elif which[i] == 1:
            columns["top_p"][i] = (last - 0.5) / v
        else:
            columns["min_p"][i] = least[i]
            gap = min(0.002, (1 - least[i]) / 3)
            weight = np.where(
                np.arange(v) < last,
                1 - rng.random(v) * (1 - least[i] - gap),
                least[i] * rng.uniform(0.1, 1 - gap, v),
            )
            weight[[0, last - 1, last]] = 1, least[i] * (1 + gap), least[i] * (1 - gap)
            x[i, order] = t[i] * np.log(weight)
    return inputs | columns | {"logits": x}


def borders(rng: np.random.Generator, v: int, count: int) -> np.ndarray:
    """Draw numbers of tokens that stay: half of them at evenly spread places of a row, half log-uniform."""
    place = np.arange(count) // 6  # among the rows of its filter that are drawn the same way
    even = 1 + (v - 2) * (rng.permutation(place[-1] + 1)[place] + rng.random(count)) / (place[-1] + 1)
    each = np.where(np.arange(count) // 3 % 2 == 1, even, factors(rng, 1, v - 1, count))
    return np.clip(each, 2, v - 1).astype(int)


def least_weights(rng: np.random.Generator, count: int) -> np.ndarray:
    """Draw min-p from all that it may be, half of them close to 1."""
    near_one = 1 - factors(rng, 0.01, 0.2, count)
    return np.where(np.arange(count) // 3 % 2 == 1, near_one, factors(rng, 0.001, 1, count) * 0.99)


ALL_WORK = 40_000  # of every kind, a logit: a limit found by halving real numbers takes some 30,000


def traffic(case: Case) -> list[Budget]:
    """Logits once, and arithmetic for a limit that is found by trying."""
    b, v = case.sizes["B"], case.sizes["V"]
    return [*row_by_row(case), work(ALL_WORK, b * v, f"{b} x {v} logits")]


# kinds of values that bring their own logits, filters or seeds
OF_THEIR_OWN = {
    "the last one wins": last_one_wins,
    ANYWHERE: anywhere,
    FAINT_TAIL: faint_tail,
    CROWDED: crowded,
    LAST_BITS: last_bits,
}


def filtered_inputs(case: Case, rng: np.random.Generator) -> dict:
    b = case.sizes["B"]
    v = case.sizes["V"]
    columns = {
        "top_k": sometimes(rng, rng.integers(1, max(2, min(v, 60)) + 1, b), 0, 4),
        "top_p": sometimes(rng, rng.uniform(0.3, 0.97, b), 1.0),
        "min_p": sometimes(rng, factors(rng, 0.01, 0.5, b), 0.0),
    }
    if case.values == "many kept":  # half of the row, and little else in the way
        columns["top_k"] = rng.integers(max(1, v // 8), v, b)
        columns["top_p"] = np.where(in_turn(rng, (0, 1, 1), b), 1.0, columns["top_p"])
        columns["min_p"] = factors(rng, 1e-6, 1e-4, b)
    if case.values == "mostly banned":
        columns = {
            "top_k": np.where(rng.random(b) < 1 / 3, rng.integers(v, 1 << 31, b), rng.integers(v // 2, v, b)),
            "top_p": rng.uniform(0.3, 0.8, b),
            "min_p": np.zeros(b),
        }
    if case.values == "a heavy tail":
        columns = {"top_k": np.zeros(b), "top_p": rng.uniform(0.5, 0.8, b), "min_p": rng.uniform(0.2, 0.4, b)}
    if case.values == MOST_FAR_BELOW:
        columns = {"top_k": np.zeros(b), "top_p": rng.uniform(0.4, 0.9, b), "min_p": np.zeros(b)}
    if case.values == "the last one wins":
        columns = {"top_k": np.zeros(b), "top_p": np.ones(b), "min_p": np.zeros(b)}
    if case.values == MANY_EQUAL:
        stay = rng.integers(min(MORE_THAN_A_BYTE, v - 1), v, b)
        columns = {"top_k": stay, "top_p": np.ones(b), "min_p": np.zeros(b)}
    if case.values in ("one low value", "zeros"):
        columns = {"top_k": rng.integers(2, 6, b), "top_p": np.ones(b), "min_p": np.zeros(b)}
    if (
        case.values == "exact borders"
    ):  # equal logits with p on a border between them, and a best one alone with a min-p of 1
        alone = np.arange(b) // 2 % 2 == 1
        columns = {
            "top_k": np.zeros(b),
            "top_p": np.where(alone, 1.0, rng.integers(1, v, b) / v),
            "min_p": np.where(alone, 1.0, 0.0),
        }
    if case.values in EDGES:  # one filter a row, so that none hides another, then all
        which = in_turn(rng, (0, 1, 2, 3), b)
        columns = {
            "top_k": np.where(which % 3 == 0, rng.integers(2, 7, b), 0),
            "top_p": np.where(which % 2 == 1, rng.uniform(0.3, 0.85, b), 1.0),
            "min_p": np.where(which >= 2, factors(rng, 0.04, 0.6, b), 0.0),
        }
    for name, off in (
        ("top_k", 0),
        ("top_p", 1.0),
        ("min_p", 0.0),
    ):  # "the first row's for all" is not "off for all"
        on = int(np.argmax(columns[name] != off))
        columns[name][[0, on]] = columns[name][[on, 0]]
    dtypes = {"top_k": np.int32, "top_p": np.float32, "min_p": np.float32}
    inputs = plain_inputs(case, rng) | {name: column.astype(dtypes[name]) for name, column in columns.items()}
    if case.values in OF_THEIR_OWN:
        return OF_THEIR_OWN[case.values](inputs, rng)
    if case.values == A_BIT_APART:
        inputs = a_bit_apart(inputs, rng)
    if case.values == "near borders":
        inputs = near_borders(inputs, rng)
    if case.values == "near min-p":
        inputs = near_min_p(inputs, rng)
    return (
        telling_seeds(inputs, rng)
        if case.values
        in (
            *EDGES,
            *BORDERS,
            A_BIT_APART,
            MANY_EQUAL,
            MOST_FAR_BELOW,
            TINY,
            "mostly banned",
            "a heavy tail",
            "many kept",
            "zeros",
        )
        else inputs
    )
