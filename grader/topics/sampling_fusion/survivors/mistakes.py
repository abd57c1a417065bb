"""List the mistakes of *survivors*, a row each."""

from grader.questions import Mistake
from grader.questions.rows import with_cells
from grader.topics.sampling_fusion.shared_concepts import survivors
from grader.topics.sampling_fusion.shared_mistakes import CHOSEN, READ_OTHERWISE, known_temperature

MISTAKES = (
    Mistake(
        "ids",
        "these are the survivors' ids: return True or False for each token, flags = np.zeros(n, bool), then flags[ids] = True",
        cell=CHOSEN + "def survivors(x, t, k, p, m):\n    return np.flatnonzero(chosen(x, t, k, p, m))",
    ),
    *with_cells(
        (Mistake(name, sentence, wrong=stays) for name, (sentence, stays) in READ_OTHERWISE.items()),
        {
            "crossing token dropped": CHOSEN
            + "def survivors(x, t, k, p, m):\n    return chosen(x, t, k, p, m, crossing=True)",
            "top-p of everything": CHOSEN
            + 'def survivors(x, t, k, p, m):\n    return chosen(x, t, k, p, m, mass="all")',
            "no temperature": CHOSEN
            + "def survivors(x, t, k, p, m):\n    return chosen(x, t, k, p, m, warm=False)",
            "no top-k": CHOSEN + "def survivors(x, t, k, p, m):\n    return chosen(x, t, 0, p, m)",
            "no top-p": CHOSEN + "def survivors(x, t, k, p, m):\n    return chosen(x, t, k, 1.0, m)",
            "no min-p": CHOSEN + "def survivors(x, t, k, p, m):\n    return chosen(x, t, k, p, 0.0)",
            "min-p first": CHOSEN
            + "def survivors(x, t, k, p, m):\n    return chosen(x, t, k, p, m, min_first=True)",
            "min-p of the row": CHOSEN
            + "def survivors(x, t, k, p, m):\n    return chosen(x, t, k, p, m, row=True)",
            "ties all stay": CHOSEN
            + "def survivors(x, t, k, p, m):\n    return chosen(x, t, k, p, m, ties=True)",
            "ties together": CHOSEN
            + "def survivors(x, t, k, p, m):\n    return chosen(x, t, k, p, m, together=True)",
            "highest id first": CHOSEN
            + "def survivors(x, t, k, p, m):\n    return chosen(x, t, k, p, m, order=lambda i, v: (-v, -i))",
            "mass counted twice": CHOSEN
            + 'def survivors(x, t, k, p, m):\n    return chosen(x, t, k, p, m, mass="twice")',
            "off read as one": CHOSEN
            + "def survivors(x, t, k, p, m):\n    return chosen(x, t, k, p, m, off=1)",
            "at most p": CHOSEN
            + "def survivors(x, t, k, p, m):\n    return chosen(x, t, k, p, m, most=True)",
            "above min-p": CHOSEN
            + "def survivors(x, t, k, p, m):\n    return chosen(x, t, k, p, m, above=True)",
        },
    ),
    Mistake(
        "top-p never off",
        "top_p = 1 turns top-p off, for tokens too that are too light to show in the sum",
        cell=CHOSEN + "def survivors(x, t, k, p, m):\n    return chosen(x, t, k, p, m, never_off=True)",
    ),
    Mistake(
        "nothing stays",
        "one token always stays, however small top_p is",
        cell=CHOSEN + "def survivors(x, t, k, p, m):\n    return chosen(x, t, k, p, m, first=False)",
    ),
    Mistake(
        "banned tokens stay",
        "a logit of -inf never survives, even if all filters are off",
        cell=CHOSEN + "def survivors(x, t, k, p, m):\n    return chosen(x, t, k, p, m, banned=True)",
    ),
    Mistake(
        "unstable order",
        "of equal logits the lower id ranks first: np.argsort needs kind='stable'",
        cell=CHOSEN
        + "def survivors(x, t, k, p, m):\n    order = np.argsort(-x)\n    flags = np.zeros(len(x), bool)\n    flags[order] = chosen(np.sort(x)[::-1], t, k, p, m)\n    return flags",
    ),
)


SHORTCUTS = {
    "temperature from a table": lambda x, t, k, p, m: survivors(x, known_temperature(t), k, p, m),
    "k up to 8": lambda x, t, k, p, m: survivors(x, t, min(k, 8), p, m),
}
