"""List the mistakes of *audit*, a row each."""

from grader.questions.rows import in_cells

MISTAKES = in_cells(
    "audit",
    "before_s, after_s, share, tokens_s",
    {
        "of the step": (
            "this is the share of the whole step that went: the part had only share of it",
            "return (before_s - after_s) / before_s, before_s * (1 - share), tokens_s * after_s",
        ),
        "of the step after": (
            "the part's share is of the step before, not after",
            "return (before_s - after_s) / (share * after_s), before_s * (1 - share), tokens_s * after_s",
        ),
        "what is left": (
            "this is what is left of the part: asked is what went",
            "return 1 - (before_s - after_s) / (share * before_s), before_s * (1 - share), tokens_s * after_s",
        ),
        "at most everything": (
            "don't hide a cut above 1: that a report needs one shows that it can't be true",
            "return min(1.0, (before_s - after_s) / (share * before_s)), before_s * (1 - share), tokens_s * after_s",
        ),
        "the part itself": (
            "this is the part's own time: without it the others remain",
            "return (before_s - after_s) / (share * before_s), before_s * share, tokens_s * after_s",
        ),
        "the step before": (
            "the rate was measured after the change, so its time is after_s",
            "return (before_s - after_s) / (share * before_s), before_s * (1 - share), tokens_s * before_s",
        ),
        "divided": (
            "rate times time are the requests in flight, not rate over time",
            "return (before_s - after_s) / (share * before_s), before_s * (1 - share), tokens_s / after_s",
        ),
        "one user's rate": (
            "this is one user's tokens per second: how many users make tokens_s?",
            "return (before_s - after_s) / (share * before_s), before_s * (1 - share), 1 / after_s",
        ),
    },
)
