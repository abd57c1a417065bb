"""List the mistakes of *bias rounds*, a row each."""

from grader.questions.rows import in_cells

BIAS = """bias, seen = np.zeros(scores.shape[1]), []
for _ in range(rounds):
    topk_ids = np.argsort(-({wanted}), axis=1, kind="stable")[:, :top_k]
    loads = np.bincount(topk_ids.reshape(-1), minlength=len(bias))
    seen.append(loads)
    bias = {moved}
return {result}"""
RIGHT_BIAS = {
    "wanted": "scores + bias",
    "moved": "bias + rate * np.sign(loads.mean() - loads)",
    "result": "bias, np.array(seen)",
}


def bias(**changed: str) -> str:
    return BIAS.format(**RIGHT_BIAS | changed)


MISTAKES = in_cells(
    "bias_rounds",
    "scores, top_k, rate, rounds",
    {
        "wrong way": (
            "a busy expert's bias falls and an idle one's rises: here it is the other way round",
            bias(moved="bias + rate * np.sign(loads - loads.mean())"),
        ),
        "in proportion": (
            "each bias moves by rate, however far its load is from the mean: take the sign",
            bias(moved="bias + rate * (loads.mean() - loads)"),
        ),
        "the mean falls": (
            "an expert with exactly the mean load keeps its bias: here its bias moves",
            bias(moved="bias + np.where(loads < loads.mean(), rate, -rate)"),
        ),
        "bias not used": (
            "the experts are chosen by score + bias: here the bias changes nothing",
            bias(wanted="scores"),
        ),
        "bias forgotten": (
            "each round starts from the bias that the round before left",
            bias(moved="rate * np.sign(loads.mean() - loads)"),
        ),
        "the higher of equals": (
            "of equal sums the expert with the lower number is chosen: a reversed sort takes the higher number",
            bias().replace(
                'np.argsort(-(scores + bias), axis=1, kind="stable")',
                'np.argsort(scores + bias, axis=1, kind="stable")[:, ::-1]',
            ),
        ),
        "a sort that keeps no order": (
            'of equal sums the expert with the lower number is chosen: np.argsort keeps their order only with kind="stable"',
            bias().replace(', kind="stable"', ""),
        ),
        "loads with the new bias": (
            "a round's loads are counted before its bias moves: here they are counted again afterwards",
            bias()
            .replace("    seen.append(loads)\n", "")
            .replace(
                "\nreturn",
                '\n    after = np.argsort(-(scores + bias), axis=1, kind="stable")[:, :top_k]\n    seen.append(np.bincount(after.reshape(-1), minlength=len(bias)))\nreturn',
            ),
        ),
        "last loads": ("return the loads of every round, one row per round", bias(result="bias, loads")),
        "scores weighted": (
            "add the bias to the score, so that it shifts all tokens equally",
            bias(wanted="scores * (1 + bias)"),
        ),
        "of the median": (
            "compare each load with the mean load, not with the median",
            bias(moved="bias + rate * np.sign(np.median(loads) - loads)"),
        ),
    },
)
