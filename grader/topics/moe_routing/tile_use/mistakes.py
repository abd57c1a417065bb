"""List the mistakes of *tile use*, a row each."""

from grader.questions.rows import in_cells

TILES = """limit = {limit}
kept = [min(n, limit) for n in loads]
tiles = {tiles}
slots = sum(tiles) * tile
return {padded}, {share}, {dropped}"""
RIGHT_TILES = {
    "limit": "math.inf if factor is None else math.ceil(factor * sum(loads) / len(loads))",
    "tiles": "[math.ceil(n / tile) for n in kept]",
    "padded": "slots - sum(kept)",
    "share": "sum(kept) / slots",
    "dropped": "sum(loads) - sum(kept)",
}


def tiles(**changed: str) -> str:
    return TILES.format(**RIGHT_TILES | changed)


MISTAKES = in_cells(
    "tile_use",
    "loads, tile, factor",
    {
        "no limit": (
            "with a factor an expert keeps at most ceil(factor * mean load) pairs, and the others are dropped",
            tiles(limit="math.inf"),
        ),
        "rounded down": (
            "the limit is rounded up: math.ceil",
            tiles(limit="math.inf if factor is None else math.floor(factor * sum(loads) / len(loads))"),
        ),
        "rounded to the nearest": (
            "the limit is rounded up, math.ceil, not to the nearest integer",
            tiles(limit="math.inf if factor is None else round(factor * sum(loads) / len(loads))"),
        ),
        "the mean rounded": (
            "the mean load need not be a whole number: multiply it by the factor unrounded, and round up once, at the end",
            tiles(
                limit="math.inf if factor is None else math.ceil(factor * math.ceil(sum(loads) / len(loads)))"
            ),
        ),
        "the mean cut off": (
            "the mean load need not be a whole number: multiply it by the factor unrounded, and round up once, at the end",
            tiles(limit="math.inf if factor is None else math.ceil(factor * (sum(loads) // len(loads)))"),
        ),
        "a tile at least": (
            "the limit is ceil(factor * mean load) even if that is less than a tile",
            tiles(
                limit="math.inf if factor is None else max(tile, math.ceil(factor * sum(loads) / len(loads)))"
            ),
        ),
        "no limit of 1": (
            "a factor of 1 is a limit as well: only None means no limit",
            tiles(limit="math.ceil(factor * sum(loads) / len(loads)) if factor and factor > 1 else math.inf"),
        ),
        "the mean of who got any": (
            "the mean load is over all experts, those without a pair included",
            tiles(
                limit="math.inf if factor is None else math.ceil(factor * sum(loads) / sum(n > 0 for n in loads))"
            ),
        ),
        "all in one": (
            "a tile belongs to one expert: round each expert's rows up, not their sum",
            tiles(tiles="[math.ceil(sum(kept) / tile)]"),
        ),
        "a tile for nobody": (
            "an expert without a pair has no tile",
            tiles(tiles="[max(1, math.ceil(n / tile)) for n in kept]"),
        ),
        "always one tile more": (
            "a load that fills its tiles needs no further one: round up rather than add one",
            tiles(tiles="[n // tile + (n > 0) for n in kept]"),
        ),
        "share of what came": (
            "a dropped pair is in no tile: count only pairs that are kept",
            tiles(share="sum(loads) / slots"),
        ),
        "mean of the experts": (
            "the share is that of all rows in all tiles, not the mean of the experts' shares",
            tiles(share="float(np.mean([n / (t * tile) if t else 1.0 for n, t in zip(kept, tiles)]))"),
        ),
        "drops as a share": (
            "the question asks for a number of pairs, not for a share",
            tiles(dropped="1 - sum(kept) / sum(loads)"),
        ),
        "padding of what came": (
            "apply the limit before the tiles: pad the pairs that are kept, not all pairs",
            tiles(padded="sum(math.ceil(n / tile) * tile for n in loads) - sum(loads)"),
        ),
        "drops for padding": (
            "padding is the tiles' rows minus the kept pairs, not minus all pairs",
            tiles(padded="slots - sum(loads)"),
        ),
    },
)
