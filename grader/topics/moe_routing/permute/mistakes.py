"""List the mistakes of *permute*, a row each."""

from grader.questions.rows import in_cells
from grader.topics.moe_routing.permute import cases

PERMUTE = """k = topk_ids.shape[1]
flat = {flat}
loads = np.bincount(flat, minlength=experts)
rows = {rows}
expert_offsets = np.concatenate([[0], np.cumsum(rows)])
before = np.concatenate([[0], np.cumsum(loads)])
order = {order}
e = flat[order]
row = {start} + np.arange(len(flat)) - before[e]
sorted_token_ids = np.full(expert_offsets[-1], {empty})
sorted_token_ids[row] = {stands}
inv_permuted_idx = np.empty(len(flat), int)
{placed}
return {first}, {second}"""
RIGHT_PERMUTE = {
    "flat": "topk_ids.ravel()",
    "rows": "-(-loads // tile) * tile",
    "order": "np.argsort(flat, kind='stable')",
    "start": "expert_offsets[e]",
    "empty": "-1",
    "stands": "order",
    "placed": "inv_permuted_idx[order] = row",
    "first": "sorted_token_ids",
    "second": "inv_permuted_idx.reshape(topk_ids.shape)",
}


def permute(**changed: str) -> str:
    return PERMUTE.format(**RIGHT_PERMUTE | changed)


MISTAKES = in_cells(
    "permute",
    "topk_ids, experts, tile",
    {
        "tokens": (
            "this is only the token: a row holds the number of a pair, token * k + slot",
            permute(stands="order // k"),
        ),
        "last first": (
            "within an expert the pairs keep their order: here later ones come first",
            permute(order="np.argsort(-flat, kind='stable')[::-1]"),
        ),
        "first choices first": (
            "pairs are numbered token by token, token * k + slot; here all first choices come before all second ones",
            permute(
                order="np.argsort(topk_ids.T.ravel(), kind='stable') % max(1, len(topk_ids)) * k + np.argsort(topk_ids.T.ravel(), kind='stable') // max(1, len(topk_ids))"
            ),
        ),
        "padding of 0": (
            "a padding row holds -1: 0 is a pair, the first of token 0",
            permute(empty="0"),
        ),
        "not padded": (
            "each expert's rows are padded to whole tiles before the next one begins",
            permute(rows="loads"),
        ),
        "padding first": (
            "an expert's padding comes after its rows, not before them",
            permute(start="expert_offsets[e + 1] - loads[e]"),
        ),
        "the list for its inverse": (
            "inv_permuted_idx is the inverse table: it holds the row of each pair, not the pair in each row, so inv_permuted_idx[order] = row",
            permute(placed="inv_permuted_idx[:] = order"),
        ),
        "row by row": (
            "the rows are in the order of the sorted list: put each at its pair, inv_permuted_idx[order] = row",
            permute(placed="inv_permuted_idx[:] = row"),
        ),
        "turned round": (
            "the two tables are swapped: return sorted_token_ids first, then inv_permuted_idx",
            permute(first="inv_permuted_idx.reshape(topk_ids.shape)", second="sorted_token_ids"),
        ),
        "rank in its expert": (
            "inv_permuted_idx counts rows from the start of the table, so add the expert's offset",
            permute(placed="inv_permuted_idx[order] = np.arange(len(flat)) - before[e]"),
        ),
    },
)


SHORTCUTS = {"tiles of eight": lambda topk_ids, n, tile: cases.permute(topk_ids, n, 8)}
