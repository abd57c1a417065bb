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
            "unpacking and arithmetic run on the same units: add the two, and let only the stream overlap with their sum",
            times(packed="max(weights * bits / 8 / bandwidth, arithmetic, unpack)"),
        ),
        "unpacking exposed": (
            "the stream of weights hides the unpacking: add it to the arithmetic, not to the total",
            times(packed="max(weights * bits / 8 / bandwidth, arithmetic) + unpack"),
        ),
        "unpacked once": (
            "each tile of tile_rows rows unpacks all weights for itself: count one unpacking per tile, the last one included",
            times(unpack="weights * unpack_s"),
        ),
        "unpacked for every row": (
            "the rows of a tile share an unpacking: count it once for every tile_rows rows",
            times(unpack="weights * unpack_s * m"),
        ),
        "part of a tile": (
            "a partly filled tile unpacks all weights: round the number of tiles up",
            times(unpack="weights * unpack_s * m / tile_rows"),
        ),
        "bits for bytes": (
            "a weight has `bits` bits: divide by 8 for bytes",
            times(packed="max(weights * bits / bandwidth, arithmetic + unpack)"),
        ),
        "whole bits": (
            "`bits` includes a weight's share of the scales and need not be a whole number: use it unrounded",
            times(packed="max(weights * (bits // 1) / 8 / bandwidth, arithmetic + unpack)"),
        ),
        "bits rounded": (
            "`bits` includes a weight's share of the scales and need not be a whole number: use it unrounded",
            times(packed="max(weights * round(bits) / 8 / bandwidth, arithmetic + unpack)"),
        ),
        "one FLOP": ("a multiply-add counts as two FLOP", times(arithmetic="m * weights / peak")),
        "other order": (
            "the dense time comes first",
            "arithmetic, unpack = 2 * m * weights / peak, weights * unpack_s * math.ceil(m / tile_rows)\nreturn max(weights * bits / 8 / bandwidth, arithmetic + unpack), max(2 * weights / bandwidth, arithmetic)",
        ),
    },
)
