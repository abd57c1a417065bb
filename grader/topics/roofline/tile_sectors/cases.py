"""Draw the inputs of *tile sectors* and limit their cost."""

from kernels.roofline import cost


def tile_sectors(rows: int, cols: int, row_length: int, elem_bytes: int) -> int:
    """Sectors that hold the first `cols` elements of each of the first `rows` rows."""
    starts = (row * row_length for row in range(rows))
    return cost.sectors(((s + c) * elem_bytes for s in starts for c in range(cols)), elem_bytes)
