"""List the mistakes of *unpack words*, a row each."""

from grader.questions.rows import in_cells

MISTAKES = in_cells(
    "unpack_words",
    "words",
    {
        "nothing cut off": (
            "a word shifted down still holds the codes above: keep its lowest four bits, & 15",
            "each = words[..., None] >> (4 * np.arange(8, dtype=np.uint32))\nreturn each.reshape(len(words), -1)",
        ),
        "first code on top": (
            "the first of eight codes is in the lowest four bits of its word: this looks for it in the highest",
            "each = words[..., None] >> (28 - 4 * np.arange(8, dtype=np.uint32)) & np.uint32(15)\nreturn each.reshape(len(words), -1)",
        ),
        "side by side": (
            "the eight codes of a word are neighbours: here all first codes come before all second ones",
            "return np.concatenate([words >> np.uint32(4 * j) & np.uint32(15) for j in range(8)], axis=1)",
        ),
        "eight bits kept": (
            "eight bits are kept, the next code's above each code's own: four bits are & 15",
            "each = words[..., None] >> (4 * np.arange(8, dtype=np.uint32)) & np.uint32(255)\nreturn each.reshape(len(words), -1)",
        ),
        "four codes a word": (
            "a word holds eight codes: here each byte gives only one",
            "each = words[..., None] >> (8 * np.arange(4, dtype=np.uint32)) & np.uint32(15)\nreturn each.reshape(len(words), -1)",
        ),
    },
)
