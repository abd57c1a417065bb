"""List the mistakes of *tile sectors*, a row each."""

from grader.questions.rows import in_cells

MISTAKES = in_cells(
    "tile_sectors",
    "rows, cols, row_length, elem_bytes",
    {
        "bytes by 32": (
            "this is the tile's bytes over 32, as if all its rows followed each other in memory",
            "return math.ceil(rows * cols * elem_bytes / 32)",
        ),
        "a sector each": (
            "this counts a sector for each element: neighbouring elements share a sector",
            "return rows * cols",
        ),
        "rows rounded up": (
            "this rounds each row up as if it began on a sector: a row may begin in the middle of a sector, and so reach one sector further",
            "return rows * math.ceil(cols * elem_bytes / 32)",
        ),
        "row by row": (
            "a sector that two rows share is counted once for each of them: count the different sectors of all rows together",
            "ends = [((r * row_length) * elem_bytes // 32, ((r * row_length + cols) * elem_bytes - 1) // 32) for r in range(rows)]\n"
            "return sum(last - first + 1 for first, last in ends)",
        ),
        "end included": (
            "a row's last byte is the one before start + cols * elem_bytes: a row that ends on a sector's border touches no sector beyond it",
            "starts = [r * row_length * elem_bytes for r in range(rows)]\n"
            "return len({s for start in starts for s in range(start // 32, (start + cols * elem_bytes) // 32 + 1)})",
        ),
        "whole rows": (
            "this counts everything between the tile's first and last element: the rest of each row is not loaded",
            "return ((rows - 1) * row_length + cols) * elem_bytes // 32 + 1",
        ),
        "no bytes": (
            "this treats an element as a byte: its address is elem_bytes times its index",
            "return len({(r * row_length + c) // 32 for r in range(rows) for c in range(cols)})",
        ),
        "bytes": (
            "these are bytes: the question asks for the number of sectors",
            "return 32 * len({(r * row_length + c) * elem_bytes // 32 for r in range(rows) for c in range(cols)})",
        ),
    },
)
