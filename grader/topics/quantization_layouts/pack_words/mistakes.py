"""List the mistakes of *pack words*, a row each."""

from grader.questions.rows import in_cells

PACK = """eights = {eights}.astype(np.uint32)
return (eights << {shifts}).sum(-1, dtype=np.uint32)"""
EIGHTS, SHIFTS = "codes.reshape(len(codes), -1, 8)", "(4 * np.arange(8, dtype=np.uint32))"


def pack(eights: str = EIGHTS, shifts: str = SHIFTS) -> str:
    return PACK.format(eights=eights, shifts=shifts)


MISTAKES = in_cells(
    "pack_words",
    "codes",
    {
        "first code on top": (
            "the first of eight codes belongs in the lowest four bits of its word: here it is in the highest",
            pack(shifts="(28 - 4 * np.arange(8, dtype=np.uint32))"),
        ),
        "bytes turned round": (
            "the two codes of each byte are swapped: the first belongs in the lower half",
            pack(shifts="(4 * np.array([1, 0, 3, 2, 5, 4, 7, 6], np.uint32))"),
        ),
        "far apart": (
            "a word holds eight neighbouring columns, 8 i to 8 i + 7: here its codes are K / 8 columns apart",
            pack(eights="codes.reshape(len(codes), 8, -1).swapaxes(1, 2)"),
        ),
        "evens first": (
            "a word holds its eight columns in order: here the even columns come first",
            pack(eights="codes.reshape(len(codes), -1, 8)[..., [0, 2, 4, 6, 1, 3, 5, 7]]"),
        ),
        "shifted in eight bits": (
            "a shifted uint8 keeps only eight bits: widen the codes to uint32 first",
            "eights = codes.reshape(len(codes), -1, 8)\nreturn (eights << (4 * np.arange(8, dtype=np.uint8))).astype(np.uint32).sum(-1, dtype=np.uint32)",
        ),
        "eight bits a code": (
            "a code takes four bits, so the next one is shifted by four more: here it is shifted by eight more",
            pack(shifts="(8 * np.arange(8, dtype=np.uint32))"),
        ),
    },
)
