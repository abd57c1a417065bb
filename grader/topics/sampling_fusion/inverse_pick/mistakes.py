"""List the mistakes of *inverse pick*, a row each."""

from grader.questions import Mistake

MISTAKES = (
    Mistake(
        "first instead of last",
        "of the tokens whose predecessors hold at most u, take the last, not the first: [-1]",
        cell="def inverse_pick(w, u):\n    return int(np.flatnonzero((w > 0) & (np.cumsum(w) - w <= u * np.sum(w)))[0])",
    ),
    Mistake(
        "weight 0",
        "on a border the later token is drawn, and at u = 0 no token of weight 0: take the first token whose running sum is above u times the total, not equal to it (np.searchsorted does so with side='right')",
        cell="def inverse_pick(w, u):\n    ends = np.cumsum(w)\n    return int(np.searchsorted(ends, u * ends[-1]))",
    ),
    Mistake(
        "weight 0 at the end",
        "a token of weight 0 is never drawn: here the last token is drawn even with weight 0, if rounding leaves the running sum below u times the total",
        cell="def inverse_pick(w, u):\n    return int(np.flatnonzero(np.cumsum(w) - w <= u * np.sum(w))[-1])",
    ),
    Mistake(
        "not the whole weight",
        "u is a share of the total weight, which need not be 1",
        cell="def inverse_pick(w, u):\n    return int(np.flatnonzero((w > 0) & (np.cumsum(w) - w <= u))[-1])",
    ),
    Mistake(
        "sums of 32 bits",
        "in float32 the sum of 1 and 0.000000001 is 1: add up the weights in float64",
        cell="def inverse_pick(w, u):\n    w = np.asarray(w, np.float32)\n    before = np.cumsum(w) - w\n    return int(np.flatnonzero((w > 0) & (before <= np.float32(u) * np.sum(w)))[-1])",
    ),
    Mistake(
        "before the border",
        "a token whose predecessors hold exactly u is drawn: <=, not <",
        cell="def inverse_pick(w, u):\n    return int(max(np.flatnonzero(w)[0], *np.flatnonzero((w > 0) & (np.cumsum(w) - w < u * np.sum(w))), -1))",
    ),
    Mistake(
        "mass with it",
        "compare the mass before a token, not the mass with it",
        cell="def inverse_pick(w, u):\n    return int(np.flatnonzero((w > 0) & (np.cumsum(w) <= u * np.sum(w)))[-1])",
    ),
)
