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
        "this is only the last tile's entry: return one entry for each tile",
        cell=states(result="found[-1]"),
    ),
    Mistake("no rescale", "the old sum is not rescaled when the maximum grows", cell=states(kept="total")),
    Mistake(
        "tile maximum",
        "the first result must be the running maximum, not the tile's own maximum",
        cell=states(new="t.max()"),
    ),
    Mistake(
        "first factor",
        "before the first tile the maximum is -inf, so the first factor is exp(-inf) = 0",
        cell=states(factor="np.exp(m - new) if found else 1.0"),
    ),
    Mistake(
        "maximum from zero",
        "the running maximum starts at -inf, not at 0: all scores may be negative",
        cell=states(new="max(m, t.max(), 0.0)"),
    ),
    Mistake(
        "starts at zero",
        "before the first tile the maximum is -inf, not 0, so the first factor is exp(-inf) = 0",
        cell=states(start="0.0"),
    ),
    Mistake(
        "maximum from a number",
        "the running maximum starts at -inf: scores may be below any finite number that replaces it",
        cell=states(new="max(m, t.max(), -1e9)"),
    ),
    Mistake(
        "all at once",
        "the largest of all scores is used before its tile has arrived: if it is far above the scores of the first tiles, their sums become 0",
        cell="def online_softmax(tiles):\n    tops = np.maximum.accumulate([t.max() for t in tiles])\n    sums = np.cumsum([np.exp(t - tops[-1]).sum() for t in tiles]) * np.exp(tops[-1] - tops)\n    return list(zip(tops, np.exp(np.concatenate(([-np.inf], tops[:-1])) - tops), sums))",
    ),
    Mistake(
        "factor upside down",
        "the factor is exp(m_old - m_new): a sum under a smaller maximum must shrink",
        cell=states(factor="np.exp(new - m) if found else 0.0"),
    ),
)


SHORTCUTS = {"the last state for all": lambda tiles: [online_states(tiles)[-1]] * len(tiles)}
