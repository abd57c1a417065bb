"""List the mistakes of *to planes*, a row each."""

from grader.questions.rows import in_cells

PLANES = """n, k = codes.shape
each = codes.reshape(n, k // 32, 32).astype(np.uint32)
lanes = {lanes}
return np.{join}([(({bit}) << lanes).sum(-1, dtype=np.uint32) for b in {order}]{axis})"""
RIGHT_PLANES = {
    "lanes": "np.arange(32, dtype=np.uint32)",
    "join": "stack",
    "bit": "each >> np.uint32(b) & np.uint32(1)",
    "order": "range(bits)",
    "axis": "",
}


def planes(**changed: str) -> str:
    return PLANES.format(**RIGHT_PLANES | changed)


MISTAKES = in_cells(
    "to_planes",
    "codes, bits",
    {
        "highest bit first": (
            "plane 0 holds the lowest bit of every code: here it holds the highest",
            planes(order="reversed(range(bits))"),
        ),
        "first column on top": (
            "the first of 32 columns is bit 0 of its word: here it is bit 31",
            planes(lanes="np.arange(31, -1, -1).astype(np.uint32)"),
        ),
        "planes last": ("the planes come first: (bits, N, K / 32)", planes(axis=", -1")),
        "nothing cut off": (
            "a plane holds one bit of each code: after the shift keep & 1",
            planes(bit="each >> np.uint32(b)"),
        ),
        "four planes always": (
            "there is one plane for each bit of a code, not always four",
            planes(order="range(4)"),
        ),
        "strided columns": (
            "a word holds 32 neighbouring columns: here its columns are K / 32 apart",
            planes().replace("reshape(n, k // 32, 32)", "reshape(n, 32, k // 32).swapaxes(1, 2)"),
        ),
        "shifted in eight bits": (
            "a shifted uint8 keeps only eight bits, so columns 8 to 31 are lost: widen the bits to uint32 before you shift them up",
            planes()
            .replace(".astype(np.uint32)\nlanes", "\nlanes")
            .replace("each >> np.uint32(b) & np.uint32(1)", "each >> np.uint8(b) & np.uint8(1)")
            .replace("dtype=np.uint32)\nreturn", "dtype=np.uint8)\nreturn"),
        ),
    },
)
