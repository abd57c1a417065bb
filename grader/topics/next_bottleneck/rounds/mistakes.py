"""List the mistakes of *rounds*, a row each."""

from grader.questions.rows import in_cells

MISTAKES = in_cells(
    "rounds",
    "step_s, shares, cuts",
    {
        "each from the start": (
            "each round starts from the times that the round before left: keep the parts' times",
            "return np.array([(step_s * shares * (1 - cut)).sum() for cut in cuts])",
        ),
        "cuts added": (
            "a cut is a share of the part's remaining time, not of its original time",
            "return step_s * np.array([(shares * np.maximum(1 - cuts[: r + 1].sum(0), 0)).sum() for r in range(len(cuts))])",
        ),
        "cuts added, even beyond all": (
            "a cut is a share of the part's remaining time, not of its original time",
            "return step_s * (1 - np.cumsum(cuts @ shares))",
        ),
        "speed-ups multiplied": (
            "speed-ups of whole steps don't multiply: in the second round the parts have different shares",
            "return step_s * np.cumprod([(shares * (1 - cut)).sum() for cut in cuts])",
        ),
        "what is removed": (
            "a cut is the share that is removed: 1 - cut stays",
            "return step_s * (shares * np.cumprod(cuts, axis=0)).sum(1)",
        ),
        "the mean cut": (
            "a cut belongs to its own part: weight it with the part's share",
            "return step_s * np.cumprod(1 - cuts.mean(1))",
        ),
    },
)
