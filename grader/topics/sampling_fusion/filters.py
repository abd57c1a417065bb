"""Which tokens stay under top-k, top-p and min-p when one of the rules is read otherwise: flags, as `survivors` gives them."""

import numpy as np

from grader.topics.sampling_fusion.rows import survivors
from kernels.sampling_fusion import reference
from kernels.sampling_fusion.rules import Rules


def ruled(**switches):
    """The same filters by another library's rules."""

    def stays(x, t, k, p, m):
        ranking = reference.Ranking.of(np.asarray(x, np.float64), t)
        return _flags(x, ranking.token, reference.kept(ranking, k, p, m, Rules(**switches)))

    return stays


def _flags(x, tokens, keep) -> np.ndarray:
    flags = np.zeros(len(x), bool)
    flags[tokens[keep]] = True
    return flags


def _nucleus(x, t, k, p, m, stays, always=True):
    """The survivors where top-p keeps what `stays`, and the first."""
    ranking = reference.Ranking.of(np.asarray(x, np.float64), t)
    keep = reference.kept(ranking, k, 1.0, m)
    limit = p * ranking.weight[: k or None].sum()
    first = (np.arange(keep.size) == 0) & always
    keep &= stays(ranking.before, ranking.weight, limit) | first | (p >= 1)
    return _flags(x, ranking.token, keep)


def crossing_dropped(x, t, k, p, m):
    return _nucleus(x, t, k, p, m, lambda before, weight, limit: before + weight <= limit)


def at_most(x, t, k, p, m):
    return _nucleus(x, t, k, p, m, lambda before, weight, limit: before <= limit)


def none_at_zero(x, t, k, p, m):
    return _nucleus(x, t, k, p, m, lambda before, weight, limit: before < limit, always=False)


def never_off(x, t, k, p, m):
    """Top-p of 1 cuts what rounding leaves no mass for."""
    ranking = reference.Ranking.of(np.asarray(x, np.float64), t)
    keep = reference.kept(ranking, k, 1.0, m)
    keep &= (ranking.before < p * ranking.weight[: k or None].sum()) | (np.arange(keep.size) == 0)
    return _flags(x, ranking.token, keep)


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


def banned_stay(x, t, k, p, m):
    """Tokens of -inf are ranked last and stay wherever the filters are off or wide."""
    x = np.asarray(x, np.float64)
    low = np.where(np.isneginf(x), x[np.isfinite(x)].min() - 1e6, x)
    return survivors(low, t, (k, p, m))


def _by_order(order_of):
    """Ranked in another order among equals."""

    def stays(x, t, k, p, m):
        x = np.asarray(x, np.float64)
        order = order_of(x)
        flags = np.zeros(len(x), bool)
        flags[order] = survivors(np.sort(x)[::-1].copy(), t, (k, p, m))
        return flags

    return stays


unstable = _by_order(lambda x: np.argsort(-x))
highest_first = _by_order(lambda x: np.argsort(x, kind="stable")[::-1])
ties_all_stay = ruled(top_k_ties="value")
ties_together = ruled(top_p_ties="value")
min_p_first = ruled(min_p_first=True)


def mass_counted_twice(x, t, k, p, m):
    """Where top-k asks for more tokens than there are, the mass of those that stay counts twice."""
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
    "top-p of everything": ("top-p's mass is that of what top-k kept, not of the whole row", of_everything),
    "no temperature": (
        "the weights of top-p and min-p are taken without the temperature",
        without_temperature,
    ),
    "no top-k": ("top-k changes nothing: only the k largest stay", without_top_k),
    "no top-p": (
        "top-p changes nothing: only tokens with less than p of the kept mass before them stay",
        without_top_p,
    ),
    "no min-p": (
        "min-p changes nothing: only tokens of at least min_p times the best one's weight stay",
        without_min_p,
    ),
    "min-p first": ("min-p comes last: top-p's mass is taken before it acts", min_p_first),
    "min-p of the row": ("min-p is a share of the best token's weight, not of the row's", min_p_of_all),
    "ties all stay": (
        "of tokens equal to the k-th largest, the lowest ids fill up to exactly k",
        ties_all_stay,
    ),
    "ties together": (
        "of equal tokens at top-p's edge, the lowest ids stay first, one by one",
        ties_together,
    ),
    "highest id first": ("of equals the lower id ranks first", highest_first),
    "mass counted twice": (
        "where top-k asks for more tokens than there are, the mass is that of those there are, once",
        mass_counted_twice,
    ),
    "off read as one": ("top_k = 0 turns top-k off", k_of_all),
    "at most p": (
        "a token stays while the mass before it is below p; where it is p exactly, it goes",
        at_most,
    ),
    "above min-p": ("a weight of exactly min_p times the best one's stays", strictly_above_min_p),
}
