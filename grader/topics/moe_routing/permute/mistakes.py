"""List the mistakes of *permute*, a row each."""

from grader.questions.rows import in_cells
from grader.topics.moe_routing.permute import cases

PERMUTE = """k = chosen.shape[1]
flat = {flat}
loads = np.bincount(flat, minlength=experts)
rows = {rows}
offsets = np.concatenate([[0], np.cumsum(rows)])
before = np.concatenate([[0], np.cumsum(loads)])
order = {order}
e = flat[order]
row = {start} + np.arange(len(flat)) - before[e]
picks = np.full(offsets[-1], {empty})
picks[row] = {stands}
place = np.empty(len(flat), int)
{placed}
return {first}, {second}"""
RIGHT_PERMUTE = {
    "flat": "chosen.ravel()",
    "rows": "-(-loads // tile) * tile",
    "order": "np.argsort(flat, kind='stable')",
    "start": "offsets[e]",
    "empty": "-1",
    "stands": "order",
    "placed": "place[order] = row",
    "first": "picks",
    "second": "place.reshape(chosen.shape)",
}


def permute(**changed: str) -> str:
    return PERMUTE.format(**RIGHT_PERMUTE | changed)


MISTAKES = in_cells(
    "permute",
    "chosen, experts, tile",
    {
        "tokens": (
            "this is only the token: a row holds the number of a pick, token * k + slot",
            permute(stands="order // k"),
        ),
        "last first": (
            "within an expert the picks keep their order: here later ones come first",
            permute(order="np.argsort(-flat, kind='stable')[::-1]"),
        ),
        "first choices first": (
            "picks are numbered token by token, token * k + slot; here all first choices come before all second ones",
            permute(
                order="np.argsort(chosen.T.ravel(), kind='stable') % max(1, len(chosen)) * k + np.argsort(chosen.T.ravel(), kind='stable') // max(1, len(chosen))"
            ),
        ),
        "padding of 0": (
            "a padding row holds -1: 0 is a pick, the first of token 0",
            permute(empty="0"),
        ),
        "not padded": (
            "each expert's rows are padded to whole tiles before the next one begins",
            permute(rows="loads"),
        ),
        "padding first": (
            "an expert's padding comes after its rows, not before them",
            permute(start="offsets[e + 1] - loads[e]"),
        ),
        "the list for the place": (
            "place is the inverse table: it holds the row of each pick, not the pick in each row, so place[order] = row",
            permute(placed="place[:] = order"),
        ),
        "row by row": (
            "the rows are in the order of the sorted list: put each at its pick, place[order] = row",
            permute(placed="place[:] = row"),
        ),
        "turned round": (
            "the two tables are swapped: return picks first, then place",
            permute(first="place.reshape(chosen.shape)", second="picks"),
        ),
        "rank in its expert": (
            "place counts rows from the start of the table, so add the expert's offset",
            permute(placed="place[order] = np.arange(len(flat)) - before[e]"),
        ),
    },
)


SHORTCUTS = {"tiles of eight": lambda chosen, n, tile: cases.permute(chosen, n, 8)}
