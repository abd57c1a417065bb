"""List the mistakes of *draft length*, a row each."""

from grader.questions.rows import in_cells

ROUND = """k = {k}
tokens = {tokens}
times = ({round}) / tokens
best = int({best})
return best, times[best], tokens[best]"""
RIGHT = {
    "k": "np.arange(most + 1)",
    "tokens": "np.cumsum(float(p) ** k)",
    "round": "k * draft_s + pass_s",
    "best": "times.argmin()",
}


MISTAKES = in_cells(
    "draft_length",
    "p, draft_s, pass_s, most",
    {
        "no own token": (
            "the target always adds a token of its own: without drafts a round yields one",
            ROUND.format(**RIGHT | {"tokens": "np.maximum(np.cumsum(float(p) ** k) - 1, 1e-12)"}),
        ),
        "each counts": (
            "a draft counts only if all before it were accepted: p, p², p³, not p each",
            ROUND.format(**RIGHT | {"tokens": "1 + k * p"}),
        ),
        "one draft's time": (
            "k drafts come one after another and take k times draft_s",
            ROUND.format(**RIGHT | {"round": "np.where(k > 0, draft_s, 0) + pass_s"}),
        ),
        "no drafting time": ("the drafts take time too", ROUND.format(**RIGHT | {"round": "pass_s + 0 * k"})),
        "checks one by one": (
            "one pass checks all drafts: that is the point",
            ROUND.format(**RIGHT | {"round": "k * draft_s + (k + 1) * pass_s"}),
        ),
        "the most tokens": (
            "the longest round yields the most tokens, but not the cheapest ones",
            ROUND.format(**RIGHT | {"best": "tokens.argmax()"}),
        ),
        "at least one": (
            "no draft at all is a choice, too, and sometimes the best one: begin with 0",
            "k = np.arange(1, most + 1) if most else np.arange(1)\ntokens = np.array([sum(float(p) ** i for i in range(n + 1)) for n in k])\ntimes = (k * draft_s + pass_s) / tokens\nb = int(times.argmin())\nreturn int(k[b]), times[b], tokens[b]",
        ),
        "one short": (
            "most itself is allowed: there are most + 1 choices, 0 to most",
            ROUND.format(**RIGHT | {"k": "np.arange(max(most, 1))"}),
        ),
        "a power short": (
            "k drafts and the target's own token make k + 1 terms, 1 to p^k: the formula's power is k + 1",
            ROUND.format(**RIGHT | {"tokens": "(1 - np.float64(p) ** k) / np.float64(1 - p)"}),
        ),
        "divided by 0": (
            "(1 - p^(k+1)) / (1 - p) divides by 0 where every draft is accepted: add the powers up",
            ROUND.format(**RIGHT | {"tokens": "(1 - np.float64(p) ** (k + 1)) / np.float64(1 - p)"}),
        ),
    },
)
