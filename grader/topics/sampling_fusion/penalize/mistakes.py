"""List the mistakes of *penalize*, a row each."""

from grader.questions import Mistake
from grader.topics.sampling_fusion.penalize.cases import penalize
from grader.topics.sampling_fusion.shared_mistakes import nearest_of

MISTAKES = (
    Mistake(
        "always divides",
        "a negative logit divided by the penalty goes up: multiply it instead",
        cell="def penalize(x, out, r, f, p):\n    n = np.bincount(np.array(out, int), minlength=len(x))\n    return np.where(n > 0, x / r, x) - f * n - p * (n > 0)",
    ),
    Mistake(
        "presence by count",
        "subtract presence once, and frequency once for each occurrence",
        cell="def penalize(x, out, r, f, p):\n    n = np.bincount(np.array(out, int), minlength=len(x))\n    return np.where(n > 0, np.where(x > 0, x / r, x * r), x) - (f + p) * n",
    ),
    Mistake(
        "subtracted first",
        "the repetition penalty comes before the other two",
        cell="def penalize(x, out, r, f, p):\n    n = np.bincount(np.array(out, int), minlength=len(x))\n    x = x - f * n - p * (n > 0)\n    return np.where(n > 0, np.where(x > 0, x / r, x * r), x)",
    ),
    Mistake(
        "frequency once",
        "subtract frequency once for each occurrence of a token",
        cell="def penalize(x, out, r, f, p):\n    n = np.bincount(np.array(out, int), minlength=len(x)) > 0\n    return np.where(n, np.where(x > 0, x / r, x * r), x) - (f + p) * n",
    ),
    Mistake(
        "repetition each time",
        "the repetition penalty acts once, however often a token has occurred",
        cell="def penalize(x, out, r, f, p):\n    n = np.bincount(np.array(out, int), minlength=len(x))\n    return np.where(x > 0, x / r**n, x * r**n) - f * n - p * (n > 0)",
    ),
    Mistake(
        "presence for all",
        "presence is subtracted only from tokens in the history",
        cell="def penalize(x, out, r, f, p):\n    n = np.bincount(np.array(out, int), minlength=len(x))\n    return np.where(n > 0, np.where(x > 0, x / r, x * r), x) - f * n - p",
    ),
)


SHORTCUTS = {
    "histories up to 40": lambda x, o, r, f, p: penalize(x, o[:40], r, f, p),
    "repetition from a table": lambda x, o, r, f, p: penalize(x, o, nearest_of(0.5, 1.0, 1.3, 2.0)(r), f, p),
}
