"""List the mistakes of *combine*, a row each."""

from grader.questions.rows import in_cells

MISTAKES = in_cells(
    "combine",
    "rows, place, weights",
    {
        "no weights": ("each row counts by its weight", "return rows[place].sum(1)"),
        "a mean": ("the weights say how much of each row; this is the mean", "return rows[place].mean(1)"),
        "made to add up to 1": (
            "weights are taken as they are: those of softmax-then-top-k do not add up to 1",
            "w = weights / weights.sum(1, keepdims=True)\nreturn (rows[place] * w[:, :, None]).sum(1)",
        ),
        "rows as they lie": (
            "a token's rows do not lie beside each other: place says where each of them is",
            "tokens, k = place.shape\nreturn (rows[: tokens * k].reshape(tokens, k, -1) * weights[:, :, None]).sum(1)",
        ),
        "the last alone": (
            "each pick is added to what is there; here the last one overwrites the others",
            "return rows[place[:, -1]] * weights[:, -1:]",
        ),
        "made finite": (
            "an infinity or a NaN in a row that somebody waits for arrives at its token: padding is left out by not being read, not by np.nan_to_num",
            "return (np.nan_to_num(rows)[place] * weights[:, :, None]).sum(1)",
        ),
        "no weight, no row": (
            "0 times an infinity is NaN: a row counts also where its weight is 0",
            "return (np.where(weights[:, :, None] == 0, 0, rows[place]) * weights[:, :, None]).sum(1)",
        ),
        "padding counted": (
            "NaN where padding holds NaN: 0 times NaN is NaN, so rows that no place names may not be read",
            "m = np.zeros((len(place), len(rows)))\nnp.put_along_axis(m, place, weights, 1)\nreturn m @ rows",
        ),
    },
)
