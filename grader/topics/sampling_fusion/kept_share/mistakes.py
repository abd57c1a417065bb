"""List the mistakes of *kept share*, a row each."""

from grader.questions import Mistake
from grader.questions.rows import with_cells
from grader.topics.sampling_fusion.kept_share.cases import share
from grader.topics.sampling_fusion.shared_concepts import survivors
from grader.topics.sampling_fusion.shared_mistakes import CHOSEN, READ_OTHERWISE, known_temperature

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


MISTAKES = (
    Mistake(
        "after the filter",
        "divide by the mass of the whole row, not by that of the survivors",
        cell="def kept_share(x, t, k, p, m):\n    return 1.0",
    ),
    Mistake(
        "of what top-k kept",
        "divide by the mass of the whole row, the sum of all weights, not by what top-k kept",
        cell=CHOSEN
        + "def kept_share(x, t, k, p, m):\n    w = np.exp((x - x.max()) / t)\n    return w[chosen(x, t, k, p, m)].sum() / w[chosen(x, t, k, 1.0, 0.0)].sum()",
    ),
    Mistake(
        "no temperature",
        "the temperature belongs in the weights, and so in the share",
        cell=CHOSEN
        + "def kept_share(x, t, k, p, m):\n    w = np.exp(x - x.max())\n    return w[chosen(x, t, k, p, m, warm=False)].sum() / w.sum()",
    ),
    Mistake(
        "a count",
        "this is a share of the tokens: the question asks for a share of the mass",
        cell=CHOSEN + "def kept_share(x, t, k, p, m):\n    return chosen(x, t, k, p, m).mean()",
    ),
    *with_cells(
        (
            Mistake(
                name, sentence, wrong=lambda x, t, k, p, m, stays=stays: share(x, t, stays(x, t, k, p, m))
            )
            for name, (sentence, stays) in READ_OTHERWISE.items()
            if name in SHARES
        ),
        {
            "min-p of the row": CHOSEN
            + "def kept_share(x, t, k, p, m):\n    w = np.exp((x - x.max()) / t)\n    return w[chosen(x, t, k, p, m, row=True)].sum() / w.sum()",
            "ties all stay": CHOSEN
            + "def kept_share(x, t, k, p, m):\n    w = np.exp((x - x.max()) / t)\n    return w[chosen(x, t, k, p, m, ties=True)].sum() / w.sum()",
            "ties together": CHOSEN
            + "def kept_share(x, t, k, p, m):\n    w = np.exp((x - x.max()) / t)\n    return w[chosen(x, t, k, p, m, together=True)].sum() / w.sum()",
            "at most p": CHOSEN
            + "def kept_share(x, t, k, p, m):\n    w = np.exp((x - x.max()) / t)\n    return w[chosen(x, t, k, p, m, most=True)].sum() / w.sum()",
            "above min-p": CHOSEN
            + "def kept_share(x, t, k, p, m):\n    w = np.exp((x - x.max()) / t)\n    return w[chosen(x, t, k, p, m, above=True)].sum() / w.sum()",
            "crossing token dropped": CHOSEN
            + "def kept_share(x, t, k, p, m):\n    w = np.exp((x - x.max()) / t)\n    return w[chosen(x, t, k, p, m, crossing=True)].sum() / w.sum()",
            "top-p of everything": CHOSEN
            + 'def kept_share(x, t, k, p, m):\n    w = np.exp((x - x.max()) / t)\n    return w[chosen(x, t, k, p, m, mass="all")].sum() / w.sum()',
            "no top-k": CHOSEN
            + "def kept_share(x, t, k, p, m):\n    w = np.exp((x - x.max()) / t)\n    return w[chosen(x, t, 0, p, m)].sum() / w.sum()",
            "no top-p": CHOSEN
            + "def kept_share(x, t, k, p, m):\n    w = np.exp((x - x.max()) / t)\n    return w[chosen(x, t, k, 1.0, m)].sum() / w.sum()",
            "no min-p": CHOSEN
            + "def kept_share(x, t, k, p, m):\n    w = np.exp((x - x.max()) / t)\n    return w[chosen(x, t, k, p, 0.0)].sum() / w.sum()",
            "min-p first": CHOSEN
            + "def kept_share(x, t, k, p, m):\n    w = np.exp((x - x.max()) / t)\n    return w[chosen(x, t, k, p, m, min_first=True)].sum() / w.sum()",
            "off read as one": CHOSEN
            + "def kept_share(x, t, k, p, m):\n    w = np.exp((x - x.max()) / t)\n    return w[chosen(x, t, k, p, m, off=1)].sum() / w.sum()",
        },
    ),
    Mistake(
        "nothing stays",
        "one token always stays, however small top_p is",
        cell=CHOSEN
        + "def kept_share(x, t, k, p, m):\n    w = np.exp((x - x.max()) / t)\n    return w[chosen(x, t, k, p, m, first=False)].sum() / w.sum()",
    ),
)


SHORTCUTS = {
    "temperature from a table": lambda x, t, k, p, m: share(
        x, known_temperature(t), survivors(x, known_temperature(t), k, p, m)
    )
}
