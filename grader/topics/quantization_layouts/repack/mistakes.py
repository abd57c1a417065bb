"""List the mistakes of *repack*, a row each."""

from grader.questions.rows import in_cells

REPACK = """n, k = qweight.shape[1], 8 * len(qweight)
shifts = 4 * np.arange(8, dtype=np.uint32)
codes = {codes}
order = {order}
tiles = codes{columns}.reshape(n // 16, 2, 8, k // 16, 2, 4, 2)
nibbles = tiles.transpose({axes}).reshape(n // 16, k // 16, 32, 8)
return order, (nibbles << shifts).sum(-1, dtype=np.uint32)"""
USUAL = {
    "codes": "(qweight[:, None, :] >> shifts[:, None] & np.uint32(15)).reshape(k, n).T",
    "order": 'np.argsort(g_idx, kind="stable")',
    "columns": "[:, order]",
    "axes": "0, 3, 2, 5, 6, 1, 4",
}


def cell(**other: str) -> str:
    return REPACK.format(**USUAL | other)


MISTAKES = in_cells(
    "repack",
    "qweight, g_idx",
    {
        "groups ignored": (
            "the columns are in the order of the file; sort them by their group, g_idx",
            cell(order="np.arange(k)"),
        ),
        "codes not sorted": (
            "order is right, but the codes are still in the order of the file: take codes[:, order]",
            cell(columns=""),
        ),
        "order turned round": (
            "column order[i] of the file becomes column i; here column i becomes column order[i]",
            cell(columns="[:, np.argsort(order)]"),
        ),
        "last group first": (
            "group 0 comes first; here the largest group number does",
            cell(order='np.argsort(-g_idx, kind="stable")'),
        ),
        "ties from the end": (
            "columns of one group keep the order of the file (a stable sort); here the last one comes first",
            cell(order='k - 1 - np.argsort(g_idx[::-1], kind="stable")'),
        ),
        "plain nibbles": (
            "nibble 1 holds column c + 8 and nibble 4 column c + 1; here the neighbour c + 1 is in nibble 1",
            cell(axes="0, 3, 2, 5, 4, 1, 6"),
        ),
        "neighbours swapped": (
            "nibbles 0 to 3 hold the even column of a pair, 4 to 7 the odd one; here the two are swapped",
            cell().replace("nibbles << shifts", "nibbles[..., [4, 5, 6, 7, 0, 1, 2, 3]] << shifts"),
        ),
        "lower half before the right one": (
            "nibble 1 is the same row, eight columns on, and nibble 2 the row eight below; here these two are swapped",
            cell(axes="0, 3, 2, 5, 6, 4, 1"),
        ),
        "lanes down the columns": (
            "lane L has rows L / 4 and L / 4 + 8; here the rows run fastest, L mod 8",
            cell(axes="0, 3, 5, 2, 6, 1, 4"),
        ),
        "rows in memory order": (
            "a word holds two rows of four columns; here it holds eight neighbours of one row",
            cell(axes="0, 3, 1, 2, 4, 5, 6"),
        ),
        "tiles down first": (
            "words[i, j] is the tile of rows 16 i and columns 16 j; here the two are exchanged",
            cell().replace(
                "return order, (nibbles << shifts).sum(-1, dtype=np.uint32)",
                "found = (nibbles << shifts).sum(-1, dtype=np.uint32)\nreturn order, found.swapaxes(0, 1).reshape(found.shape)",
            ),
        ),
        "first code on top": (
            "the first of the file's eight codes is in the lowest four bits; this looks for it in the highest",
            cell(codes="(qweight[:, None, :] >> shifts[::-1, None] & np.uint32(15)).reshape(k, n).T"),
        ),
    },
)
