"""List the mistakes of *combine*, a row each."""

from grader.questions.rows import in_cells

MISTAKES = in_cells(
    "combine",
    "rows, place, weights",
    {
        "no weights": ("multiply each row by its weight", "return rows[place].sum(1)"),
        "a mean": (
            "this is the mean of the rows: multiply each row by its weight",
            "return rows[place].mean(1)",
        ),
        "made to add up to 1": (
            "use the weights as they are: those of softmax, then top-k don't add up to 1",
            "w = weights / weights.sum(1, keepdims=True)\nreturn (rows[place] * w[:, :, None]).sum(1)",
        ),
        "rows as they lie": (
            "a token's rows are not next to each other: place says where each of them is",
            "tokens, k = place.shape\nreturn (rows[: tokens * k].reshape(tokens, k, -1) * weights[:, :, None]).sum(1)",
        ),
        "the last alone": (
            "each pick is added to the token's sum: here the last one overwrites the others",
            "return rows[place[:, -1]] * weights[:, -1:]",
        ),
        "made finite": (
            "an infinity or a NaN in a pick's row must reach its token: leave padding out by not reading it, not by np.nan_to_num",
            "return (np.nan_to_num(rows)[place] * weights[:, :, None]).sum(1)",
        ),
        "no weight, no row": (
            "0 times an infinity is NaN: a row counts even if its weight is 0",
            "return (np.where(weights[:, :, None] == 0, 0, rows[place]) * weights[:, :, None]).sum(1)",
        ),
        "padding counted": (
            "NaN if padding holds NaN: 0 times NaN is NaN, so don't read rows that place doesn't name",
            "m = np.zeros((len(place), len(rows)))\nnp.put_along_axis(m, place, weights, 1)\nreturn m @ rows",
        ),
    },
)
