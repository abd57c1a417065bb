"""List the mistakes of *online softmax*, a row each."""

from grader.questions import Mistake
from grader.topics.flash_attention.online_softmax.cases import online_states

STATES = """
def online_softmax(tiles):
    m, total, found = {start}, 0.0, []
    for t in tiles:
        new = {new}
        factor = {factor}
        total = {kept} + np.exp(t - new).sum()
        m = new
        found.append((m, factor, total))
    return {result}
"""
RIGHT_STATES = {
    "start": "-np.inf",
    "new": "max(m, t.max())",
    "factor": "np.exp(m - new)",
    "kept": "total * factor",
    "result": "found",
}


def states(**changed) -> str:
    return STATES.format(**RIGHT_STATES | changed)


MISTAKES = (
    Mistake(
        "last state alone",
        "one entry for each tile is asked, and this is the last alone: return the list of all",
        cell=states(result="found[-1]"),
    ),
    Mistake("no rescale", "the old sum is not scaled when the maximum grows", cell=states(kept="total")),
    Mistake(
        "tile maximum",
        "the first number must be the running maximum, not the tile's own",
        cell=states(new="t.max()"),
    ),
    Mistake(
        "first factor",
        "before the first tile the maximum is -inf, so the first factor is exp(-inf) = 0",
        cell=states(factor="np.exp(m - new) if found else 1.0"),
    ),
    Mistake(
        "maximum from zero",
        "the running maximum starts at -inf, not at 0: scores may all lie below zero",
        cell=states(new="max(m, t.max(), 0.0)"),
    ),
    Mistake(
        "starts at zero",
        "before the first tile the maximum is -inf, not 0: the first factor is then exp(-inf) = 0",
        cell=states(start="0.0"),
    ),
    Mistake(
        "maximum from a number",
        "the running maximum starts at -inf: scores may lie below any number that stands for it",
        cell=states(new="max(m, t.max(), -1e9)"),
    ),
    Mistake(
        "all at once",
        "the largest score of all is used before it has come: where it lies far above the first tiles, their sums are 0",
        cell="def online_softmax(tiles):\n    tops = np.maximum.accumulate([t.max() for t in tiles])\n    sums = np.cumsum([np.exp(t - tops[-1]).sum() for t in tiles]) * np.exp(tops[-1] - tops)\n    return list(zip(tops, np.exp(np.concatenate(([-np.inf], tops[:-1])) - tops), sums))",
    ),
    Mistake(
        "factor upside down",
        "the factor is exp(m_old - m_new): what was summed under a smaller maximum shrinks",
        cell=states(factor="np.exp(new - m) if found else 0.0"),
    ),
)


SHORTCUTS = {"the last state for all": lambda tiles: [online_states(tiles)[-1]] * len(tiles)}
