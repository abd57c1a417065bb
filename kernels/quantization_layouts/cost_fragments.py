"""Map the operand W of `mma.m16n8k16` to lanes, as the PTX ISA defines it, and to the nibbles of this course's words.

A warp holds a 16 x 16 tile of W in 16-bit numbers. Lane `lane` holds eight numbers, a0 to a7, two a register. A word
of the packed layout holds the same eight elements as 4-bit codes.
"""

from kernels import require

ROWS, COLUMNS, LANES, PER_LANE = 16, 16, 32, 8


def fragment_element(lane: int, i: int) -> tuple[int, int]:
    """Return (row, column) of element a_i of a lane. Bit 0 of i is the column's parity, bit 1 the lower half, bit 2 the right."""
    require.must(0 <= lane < LANES, "lane", f"from 0 to {LANES - 1}", lane, "a warp has 32")
    require.must(0 <= i < PER_LANE, "i", f"from 0 to {PER_LANE - 1}", i, "a lane holds eight elements")
    return lane // 4 + 8 * (i >> 1 & 1), 2 * (lane % 4) + (i & 1) + 8 * (i >> 2)


def fragment_owner(row: int, column: int) -> tuple[int, int]:
    """Return (lane, i), the lane that holds an element of the tile, and the element's index within the lane."""
    require.must(0 <= row < ROWS, "row", f"from 0 to {ROWS - 1}", row, "the tile is 16 x 16")
    require.must(0 <= column < COLUMNS, "column", f"from 0 to {COLUMNS - 1}", column, "the tile is 16 x 16")
    return 4 * (row % 8) + column % 8 // 2, column % 2 + 2 * (row // 8) + 4 * (column // 8)


def nibble_of(i: int) -> int:
    """Return the nibble of a lane's word that holds a_i: i with its three bits in reverse.

    So a register's two elements, a_2r and a_2r+1, are 16 bits apart, so that one AND and one OR reach the pair.
    """
    require.must(0 <= i < PER_LANE, "i", f"from 0 to {PER_LANE - 1}", i, "a word holds eight nibbles")
    return (i & 1) << 2 | i & 2 | i >> 2


def unpack_instructions(dtype: str) -> dict[str, int]:
    """Count the instructions that turn a word of eight codes into four registers of two numbers each.

    `lop3` combines an AND and an OR. In fp16 the upper nibbles can stay where they are, as 1024 + 16 code, since 16 *
    15 fits into ten mantissa bits. An FMA by 1/16 brings them down. bf16 has seven bits, so every pair is shifted
    down first.
    """
    require.one_of(("fp16", "bf16"), dtype=dtype)
    if dtype == "fp16":
        return {"lop3": 4, "shift": 1, "floating point": 4}  # two subtractions, two FMAs
    return {"lop3": 4, "shift": 3, "floating point": 4}
