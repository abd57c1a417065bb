"""List the mistakes of *combine*, a row each."""

from grader.questions.rows import in_cells

MISTAKES = in_cells(
    "combine",
    "rows, inv_permuted_idx, topk_weights",
    {
        "no weights": ("multiply each row by its weight", "return rows[inv_permuted_idx].sum(1)"),
        "a mean": (
            "this is the mean of the rows: multiply each row by its weight",
            "return rows[inv_permuted_idx].mean(1)",
        ),
        "made to add up to 1": (
            "use the weights as they are: those of softmax, then top-k don't add up to 1",
            "w = topk_weights / topk_weights.sum(1, keepdims=True)\nreturn (rows[inv_permuted_idx] * w[:, :, None]).sum(1)",
        ),
        "rows as they lie": (
            "a token's rows are not next to each other: inv_permuted_idx says where each of them is",
            "tokens, k = inv_permuted_idx.shape\nreturn (rows[: tokens * k].reshape(tokens, k, -1) * topk_weights[:, :, None]).sum(1)",
        ),
        "the last alone": (
            "each pair is added to the token's sum: here the last one overwrites the others",
            "return rows[inv_permuted_idx[:, -1]] * topk_weights[:, -1:]",
        ),
        "made finite": (
            "an infinity or a NaN in a pair's row must reach its token: leave padding out by not reading it, not by np.nan_to_num",
            "return (np.nan_to_num(rows)[inv_permuted_idx] * topk_weights[:, :, None]).sum(1)",
        ),
        "no weight, no row": (
            "0 times an infinity is NaN: a row counts even if its weight is 0",
            "return (np.where(topk_weights[:, :, None] == 0, 0, rows[inv_permuted_idx]) * topk_weights[:, :, None]).sum(1)",
        ),
        "padding counted": (
            "NaN if padding holds NaN: 0 times NaN is NaN, so don't read rows that inv_permuted_idx doesn't name",
            "m = np.zeros((len(inv_permuted_idx), len(rows)))\nnp.put_along_axis(m, inv_permuted_idx, topk_weights, 1)\nreturn m @ rows",
        ),
    },
)
