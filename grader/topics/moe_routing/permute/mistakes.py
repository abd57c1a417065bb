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
            "a row holds the number of a pick, token * k + slot; this is the token alone",
            permute(stands="order // k"),
        ),
        "last first": (
            "within an expert the picks keep their order: here later ones stand first",
            permute(order="np.argsort(-flat, kind='stable')[::-1]"),
        ),
        "first choices first": (
            "picks are numbered token by token, token * k + slot; here all first choices come before all second ones",
            permute(
                order="np.argsort(chosen.T.ravel(), kind='stable') % max(1, len(chosen)) * k + np.argsort(chosen.T.ravel(), kind='stable') // max(1, len(chosen))"
            ),
        ),
        "padding of 0": (
            "padding belongs to nobody and is -1; 0 is a pick, the first of token 0",
            permute(empty="0"),
        ),
        "not padded": (
            "each expert's rows are padded to whole tiles before the next one begins",
            permute(rows="loads"),
        ),
        "padding first": (
            "an expert's padding stands behind its rows, not before them",
            permute(start="offsets[e + 1] - loads[e]"),
        ),
        "the list for the place": (
            "place is the other way round: not which pick stands in a row, but the row of each pick: place[order] = row",
            permute(placed="place[:] = order"),
        ),
        "row by row": (
            "the rows are in the order of the sorted list: put each at its pick, place[order] = row",
            permute(placed="place[:] = row"),
        ),
        "turned round": (
            "two tables are asked in this order, picks and then place: these are place and picks",
            permute(first="place.reshape(chosen.shape)", second="picks"),
        ),
        "rank in its expert": (
            "place counts rows from the start of all, so an expert's offset is part of it",
            permute(placed="place[order] = np.arange(len(flat)) - before[e]"),
        ),
    },
)


SHORTCUTS = {"tiles of eight": lambda chosen, n, tile: cases.permute(chosen, n, 8)}
