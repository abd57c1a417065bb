"""List the mistakes of *count*, a row each."""

from grader.questions.rows import in_cells
from grader.topics.moe_routing.count.cases import loads_and_offsets

COUNT = """loads = {loads}
rows = {rows}
return loads, {expert_offsets}"""
RIGHT_COUNT = {
    "loads": "np.bincount(topk_ids.ravel(), minlength=experts)",
    "rows": "-(-loads // tile) * tile",
    "expert_offsets": "np.concatenate([[0], np.cumsum(rows)])",
}


def count(**changed: str) -> str:
    return COUNT.format(**RIGHT_COUNT | changed)


MISTAKES = in_cells(
    "count",
    "topk_ids, experts, tile",
    {
        "not padded": (
            "each expert's rows are padded to whole tiles before the next one begins: round each load up to a multiple of the tile",
            count(rows="loads"),
        ),
        "rounded down": ("a partly filled tile is a tile: round up", count(rows="loads // tile * tile")),
        "always one tile more": (
            "a load that fills its tiles needs no further one: round up, ceil(load / tile), rather than add one",
            count(rows="np.where(loads, loads // tile + 1, 0) * tile"),
        ),
        "a tile for nobody": (
            "an expert without a pair has no tile: ceil(0 / tile) is 0",
            count(rows="np.maximum(1, -(-loads // tile)) * tile"),
        ),
        "the sum alone padded": (
            "each expert is padded on its own: take the running sum of the padded loads",
            count(expert_offsets="np.concatenate([[0], -(-np.cumsum(loads) // tile) * tile])"),
        ),
        "in tiles": (
            "expert_offsets count rows, not tiles: multiply by the tile",
            count(rows="-(-loads // tile)"),
        ),
        "no first 0": (
            "there are experts + 1 expert_offsets: the first one is 0, where the first expert begins",
            count(expert_offsets="np.cumsum(rows)"),
        ),
        "the first choice alone": (
            "all k pairs of a token count, not only its first choice",
            count(loads="np.bincount(topk_ids[:, 0], minlength=experts)"),
        ),
        "last experts left out": (
            "experts after the last one that was picked have a load of 0: give np.bincount minlength",
            count(loads="np.bincount(topk_ids.ravel())"),
        ),
    },
)


SHORTCUTS = {"tiles of eight": lambda topk_ids, n, tile: loads_and_offsets(topk_ids, n, 8)}
