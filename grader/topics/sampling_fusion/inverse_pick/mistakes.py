"""List the mistakes of *inverse pick*, a row each."""

from grader.questions import Mistake

MISTAKES = (
    Mistake(
        "first instead of last",
        "of the tokens whose predecessors hold at most u, the last is asked and not the first: [-1]",
        cell="def inverse_pick(w, u):\n    return int(np.flatnonzero((w > 0) & (np.cumsum(w) - w <= u * np.sum(w)))[0])",
    ),
    Mistake(
        "weight 0",
        "on a border the later token is drawn, and at u = 0 none of weight 0: the first whose running sum lies above u of the whole, not at it (np.searchsorted does so with side='right')",
        cell="def inverse_pick(w, u):\n    ends = np.cumsum(w)\n    return int(np.searchsorted(ends, u * ends[-1]))",
    ),
    Mistake(
        "weight 0 at the end",
        "a token of weight 0 is never drawn: where the running sum is rounded below u of the sum, the last one is",
        cell="def inverse_pick(w, u):\n    return int(np.flatnonzero(np.cumsum(w) - w <= u * np.sum(w))[-1])",
    ),
    Mistake(
        "not the whole weight",
        "u is a share of the whole weight, which need not be 1",
        cell="def inverse_pick(w, u):\n    return int(np.flatnonzero((w > 0) & (np.cumsum(w) - w <= u))[-1])",
    ),
    Mistake(
        "sums of 32 bits",
        "in float32 a sum of 1 and 0.000000001 is 1: add the weights up in float64",
        cell="def inverse_pick(w, u):\n    w = np.asarray(w, np.float32)\n    before = np.cumsum(w) - w\n    return int(np.flatnonzero((w > 0) & (before <= np.float32(u) * np.sum(w)))[-1])",
    ),
    Mistake(
        "before the border",
        "a token whose predecessors hold exactly u is drawn: <=, not <",
        cell="def inverse_pick(w, u):\n    return int(max(np.flatnonzero(w)[0], *np.flatnonzero((w > 0) & (np.cumsum(w) - w < u * np.sum(w))), -1))",
    ),
    Mistake(
        "mass with it",
        "the mass before a token decides, not the mass with it",
        cell="def inverse_pick(w, u):\n    return int(np.flatnonzero((w > 0) & (np.cumsum(w) <= u * np.sum(w)))[-1])",
    ),
)
