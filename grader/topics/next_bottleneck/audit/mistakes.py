"""List the mistakes of *audit*, a row each."""

from grader.questions.rows import in_cells

MISTAKES = in_cells(
    "audit",
    "before_s, after_s, share, tokens_s",
    {
        "of the step": (
            "this is the share of the whole step that was saved: divide by the part's time, share * before_s",
            "return (before_s - after_s) / before_s, before_s * (1 - share), tokens_s * after_s",
        ),
        "of the step after": (
            "the part's share refers to the step before the change, not after it",
            "return (before_s - after_s) / (share * after_s), before_s * (1 - share), tokens_s * after_s",
        ),
        "what is left": (
            "this is the share of the part that is left: the question asks for the share that was removed",
            "return 1 - (before_s - after_s) / (share * before_s), before_s * (1 - share), tokens_s * after_s",
        ),
        "at most everything": (
            "don't hide a cut above 1: it shows that the report can't be true",
            "return min(1.0, (before_s - after_s) / (share * before_s)), before_s * (1 - share), tokens_s * after_s",
        ),
        "the part itself": (
            "this is the part's own time: the shortest step is the time of the other parts",
            "return (before_s - after_s) / (share * before_s), before_s * share, tokens_s * after_s",
        ),
        "the step before": (
            "the rate was measured after the change, so its time is after_s",
            "return (before_s - after_s) / (share * before_s), before_s * (1 - share), tokens_s * before_s",
        ),
        "divided": (
            "the requests in flight are rate times time, not rate over time",
            "return (before_s - after_s) / (share * before_s), before_s * (1 - share), tokens_s / after_s",
        ),
        "one user's rate": (
            "this is one user's tokens per second: how many users make tokens_s?",
            "return (before_s - after_s) / (share * before_s), before_s * (1 - share), 1 / after_s",
        ),
    },
)
