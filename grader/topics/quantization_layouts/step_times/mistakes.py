"""List the mistakes of *step times*, a row each."""

from grader.questions.rows import in_cells

TIMES = """arithmetic, unpack = {arithmetic}, {unpack}
return {dense}, {packed}"""
RIGHT_TIMES = {
    "arithmetic": "2 * m * weights / peak",
    "unpack": "weights * unpack_s * math.ceil(m / tile_rows)",
    "dense": "max(2 * weights / bandwidth, arithmetic)",
    "packed": "max(weights * bits / 8 / bandwidth, arithmetic + unpack)",
}


def times(**changed: str) -> str:
    return TIMES.format(**RIGHT_TIMES | changed)


MISTAKES = in_cells(
    "step_times",
    "m, weights, bits, unpack_s, tile_rows, peak, bandwidth",
    {
        "added up": (
            "bytes and arithmetic overlap: the longer of the two counts, not their sum",
            times(
                dense="2 * weights / bandwidth + arithmetic",
                packed="weights * bits / 8 / bandwidth + arithmetic + unpack",
            ),
        ),
        "unpacking hidden": (
            "unpacking runs on the same units as the arithmetic here, so it adds to it and hides under the stream alone",
            times(packed="max(weights * bits / 8 / bandwidth, arithmetic, unpack)"),
        ),
        "unpacking exposed": (
            "unpacking hides under the stream of weights: it adds to the arithmetic, not to the whole",
            times(packed="max(weights * bits / 8 / bandwidth, arithmetic) + unpack"),
        ),
        "unpacked once": (
            "each tile of tile_rows rows unpacks all weights for itself: once for every tile, the last one too",
            times(unpack="weights * unpack_s"),
        ),
        "unpacked for every row": (
            "rows of one tile share an unpacking: it is paid once for every tile_rows rows",
            times(unpack="weights * unpack_s * m"),
        ),
        "part of a tile": (
            "a tile that is part full unpacks all weights: round the number of tiles up",
            times(unpack="weights * unpack_s * m / tile_rows"),
        ),
        "bits for bytes": (
            "a weight has `bits` bits: eight of them are a byte",
            times(packed="max(weights * bits / bandwidth, arithmetic + unpack)"),
        ),
        "whole bits": (
            "`bits` is a weight's share of everything, scales included, and no whole number: it is taken as it is",
            times(packed="max(weights * (bits // 1) / 8 / bandwidth, arithmetic + unpack)"),
        ),
        "bits rounded": (
            "`bits` is a weight's share of everything, scales included, and no whole number: it is taken as it is",
            times(packed="max(weights * round(bits) / 8 / bandwidth, arithmetic + unpack)"),
        ),
        "one FLOP": ("a multiply-add counts as two FLOP", times(arithmetic="m * weights / peak")),
        "other order": (
            "the dense time comes first",
            "arithmetic, unpack = 2 * m * weights / peak, weights * unpack_s * math.ceil(m / tile_rows)\nreturn max(weights * bits / 8 / bandwidth, arithmetic + unpack), max(2 * weights / bandwidth, arithmetic)",
        ),
    },
)
