"""Share mistakes among questions of sampling fusion."""

import numpy as np

from grader.box.serve.frames import DTYPES
from grader.questions import Case
from grader.questions.families import computing, family
from grader.topics.sampling_fusion.shared_rows import (
    best,
    filters,
    final_logits,
    gumbel_of,
    survivors,
    tokens_wanted,
    uniform,
)
from kernels.sampling_fusion import reference
from kernels.sampling_fusion.rules import Rules


def ruled(**switches):
    """The same filters by another library's rules."""

    def stays(x, t, k, p, m):
        ranking = reference.Ranking.of(np.asarray(x, np.float64), t)
        return flags(x, ranking.token, reference.kept(ranking, k, p, m, Rules(**switches)))

    return stays


def flags(x, tokens, keep) -> np.ndarray:
    flags = np.zeros(len(x), bool)
    flags[tokens[keep]] = True
    return flags


def nucleus(x, t, k, p, m, stays, always=True):
    """Return the survivors if top-p keeps what `stays`, and the first token."""
    ranking = reference.Ranking.of(np.asarray(x, np.float64), t)
    keep = reference.kept(ranking, k, 1.0, m)
    limit = p * ranking.weight[: k or None].sum()
    first = (np.arange(keep.size) == 0) & always
    keep &= stays(ranking.before, ranking.weight, limit) | first | (p >= 1)
    return flags(x, ranking.token, keep)


def crossing_dropped(x, t, k, p, m):
    return nucleus(x, t, k, p, m, lambda before, weight, limit: before + weight <= limit)


def at_most(x, t, k, p, m):
    return nucleus(x, t, k, p, m, lambda before, weight, limit: before <= limit)


def of_everything(x, t, k, p, m):
    return survivors(x, t, (k, 1.0, m)) & survivors(x, t, (0, p, m))


def without_temperature(x, t, k, p, m):
    return survivors(x, 1.0, (k, p, m))


def without_min_p(x, t, k, p, m):
    return survivors(x, t, (k, p, 0.0))


def without_top_k(x, t, k, p, m):
    return survivors(x, t, (0, p, m))


def without_top_p(x, t, k, p, m):
    return survivors(x, t, (k, 1.0, m))


def min_p_of_all(x, t, k, p, m):
    """Min-p compared with a token's share of the row, not with its ratio to the best."""
    x = np.asarray(x, np.float64)
    weight = np.exp((x - x.max()) / t)
    return survivors(x, t, (k, p, 0.0)) & (weight / weight.sum() >= m)


def strictly_above_min_p(x, t, k, p, m):
    x = np.asarray(x, np.float64)
    return survivors(x, t, (k, p, 0.0)) & (np.exp((x - x.max()) / t) > m)


def by_order(order_of):
    """Ranked in another order among equals."""

    def stays(x, t, k, p, m):
        x = np.asarray(x, np.float64)
        order = order_of(x)
        flags = np.zeros(len(x), bool)
        flags[order] = survivors(np.sort(x)[::-1].copy(), t, (k, p, m))
        return flags

    return stays


highest_first = by_order(lambda x: np.argsort(x, kind="stable")[::-1])
ties_all_stay = ruled(top_k_ties="value")
ties_together = ruled(top_p_ties="value")
min_p_first = ruled(min_p_first=True)


def mass_counted_twice(x, t, k, p, m):
    """Count the mass of the kept tokens twice if top-k asks for more tokens than there are."""
    real = int(np.isfinite(np.asarray(x, np.float64)).sum())
    return survivors(x, t, (k, min(2 * p, 1.0) if (k or len(x)) > real else p, m))


def k_of_all(x, t, k, p, m):
    """Top-k off is read as k = 1."""
    return survivors(x, t, (k or 1, p, m))


READ_OTHERWISE = {
    "crossing token dropped": (
        "the token that crosses p stays: compare the mass before it, not with it",
        crossing_dropped,
    ),
    "top-p of everything": (
        "top-p takes its share of the mass that top-k kept, not of the whole row's mass",
        of_everything,
    ),
    "no temperature": (
        "the weights of top-p and min-p are computed without the temperature here",
        without_temperature,
    ),
    "no top-k": ("top-k has no effect here: only the k largest logits stay", without_top_k),
    "no top-p": (
        "top-p has no effect here: a token stays only if the mass before it is below the share p of the kept mass",
        without_top_p,
    ),
    "no min-p": (
        "min-p has no effect here: a token stays only if its weight is at least min_p times the best token's",
        without_min_p,
    ),
    "min-p first": ("min-p comes last: top-p's mass is computed before min-p removes anything", min_p_first),
    "min-p of the row": ("min-p is a share of the best token's weight, not of the row's", min_p_of_all),
    "ties all stay": (
        "of the tokens equal to the k-th largest, the lowest ids stay, so that exactly k are left (a search for the k-th largest "
        "by halves must go on until no two logits are left between its ends)",
        ties_all_stay,
    ),
    "ties together": (
        "of equal tokens at the edge of top-p, those with the lowest ids stay, one by one",
        ties_together,
    ),
    "highest id first": ("of equal logits the lower id ranks first", highest_first),
    "mass counted twice": (
        "if top-k is larger than the number of tokens, the mass is that of all tokens, each counted once",
        mass_counted_twice,
    ),
    "off read as one": ("top_k = 0 turns top-k off", k_of_all),
    "at most p": (
        "a token stays while the mass before it is below p: if that mass is exactly p, the token goes",
        at_most,
    ),
    "above min-p": ("a weight of exactly min_p times the best one's stays", strictly_above_min_p),
}


def row_by_row(pick, cold=False):
    """Return the tokens of `pick(inputs, i, x, t, u)`, row by row. Rows of temperature 0 are right, unless `cold`."""

    def wrong(inputs: dict, case: Case) -> dict:
        token = tokens_wanted(inputs, case)["token"]
        for i in np.flatnonzero((inputs["temperature"] > 0) | cold):
            x, t = final_logits(inputs, i), float(inputs["temperature"][i])
            if x.max() == -np.inf:
                continue
            token[i] = pick(inputs, i, x, t, uniform(int(inputs["seed"][i]), np.arange(x.size)))
        return {"token": token}

    return wrong


def scored(score):
    """The same where `score(x, t, u)` is maximised."""
    return row_by_row(lambda inputs, i, x, t, u: best(score(x, t, u)))


def with_inputs(**changed):
    """The right tokens of other inputs."""
    return lambda inputs, case: tokens_wanted(
        inputs | {n: change(inputs[n]) for n, change in changed.items()}, case
    )


def of_equals(order):
    """Choose among equal scores the token that comes first in `order(number of tokens)`, in cold rows too."""

    def pick(inputs, i, x, t, u):
        s = x / t + gumbel_of(u) if t else x
        best = order(x.size)
        return int(best[np.argmax(s[best])])

    return row_by_row(pick, cold=True)


def rounded_logits(dtype):
    return with_inputs(logits=lambda x: x.astype(DTYPES[dtype]).astype(x.dtype))


def nearest(*table):
    """A knob taken from the values that a table holds."""
    known = np.array(table, np.float32)
    return lambda column: known[np.abs(column[:, None] - known).argmin(1)]


def first_row(column: np.ndarray) -> np.ndarray:
    return np.full_like(column, column[0])


def with_tables(**tables):
    function = with_inputs(**{name: nearest(*values) for name, values in tables.items()})
    function.computes = True
    return function


GREEDY = family(
    "always greedy",
    "every row took its largest logit: add the noise if the temperature is not 0",
    with_inputs(temperature=np.zeros_like),
)
NEVER_GREEDY = family(
    "never greedy",
    "a temperature of 0 means the largest logit, without noise",
    with_inputs(temperature=lambda t: np.where(t == 0, np.float32(1), t)),
)


ROUNDED_TO_FP16 = family(
    "rounded to fp16",
    "logits that differ in fp32 may be equal in fp16: compare and add in fp32",
    rounded_logits("fp16"),
)


def of_each_row(*names: str) -> list:
    """Return a mistake for each column that has a separate number for every row."""
    return [
        family(f"one {name}", f"each row has its own {name}: {name}[b]", with_inputs(**{name: first_row}))
        for name in names
    ]


ONE_SEED = family("one seed", "each row has its own seed: seed[b]", with_inputs(seed=first_row))
HIGHEST = family(
    "highest of equals", "of equal scores the lowest id is drawn", of_equals(lambda n: np.arange(n)[::-1])
)
BANNED = family(
    "banned row drawn",
    "a row whose logits are all -inf gives -1",
    lambda i, c: {"token": np.maximum(tokens_wanted(i, c)["token"], 0)},
)
STAND_INS = (-1e4, -1e9, float(np.finfo(np.float32).min))


def above(number: float, nothing: int):
    """Return the best score above a number, or `nothing`."""

    def pick(inputs, i, x, t, u):
        s = x / t + gumbel_of(u) if t else x
        found = best(np.where(s > number, s, -np.inf))
        return nothing if found < 0 else found

    return row_by_row(pick, cold=True)


STAND_IN = "a finite number replaces minus infinity, and logits may be below it: start the best score at -inf"
TEMPERATURES = (0.0, 0.3, 0.5, 0.7, 1.0, 1.3, 1.5, 1.7, 2.0)


def among(stays, nothing: int = -1):
    """Draw among the tokens that `stays(x, t, top_k, top_p, min_p)` flags, or return `nothing` if there is none."""

    def drawn(inputs, i, x, t, u):
        score = np.where(stays(x, t, *filters(inputs, i)), x / t + gumbel_of(u), -np.inf)
        return nothing if score.max() == -np.inf else best(score)

    return row_by_row(drawn)


def as_bits_order(x):
    """Order logits by the bits of a float, with -0.0 below 0.0."""
    x = np.asarray(x, np.float64)
    return np.where((x == 0) & np.signbit(x), -1e-30, x)


@computing
def capped_k(inputs: dict, case: Case) -> dict:
    return tokens_wanted(inputs | {"top_k": np.minimum(inputs["top_k"], 50)}, case)


def nearest_of(*values):
    return lambda knob: min(values, key=lambda known: abs(known - knob))


known_temperature = nearest_of(0.3, 0.5, 0.7, 1.0, 1.5, 1.7, 2.0)
CHOSEN = """
def chosen(x, t, k, p, m, order=lambda i, v: (-v, i), warm=True, ties=False, together=False, off=0, mass="kept",
           crossing=False, most=False, first=True, min_first=False, row=False, above=False, banned=False,
           never_off=False):
    x = np.asarray(x, float)
    ids = sorted((i for i in range(len(x)) if banned or x[i] > -np.inf), key=lambda i: order(i, x[i]))
    best = x.max()
    w = np.exp((x[ids] - best) / (t if warm else 1.0))
    k = (k or off) or len(ids)
    keep = np.arange(len(ids)) < k
    if ties and k <= len(ids):
        keep = x[ids] >= x[ids[k - 1]]
    least = (w > m) if above else (w >= m * (w.sum() if row else 1.0))
    if min_first:
        keep = keep & least
    before = np.cumsum(w) - w
    if together:
        before = np.array([before[np.searchsorted(-x[ids], -x[i])] for i in ids])
    if p < 1 or never_off:
        limit = p * (w.sum() if mass == "all" else w[keep].sum()) * (2 if mass == "twice" and k > len(ids) else 1)
        inside = before + w <= limit if crossing else before <= limit if most else before < limit
        keep = keep & (inside | ((np.arange(len(ids)) == 0) & first))
    keep = keep & least
    flags = np.zeros(len(x), bool)
    flags[np.array(ids)[keep]] = True
    return flags


"""
