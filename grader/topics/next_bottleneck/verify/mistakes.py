"""List the mistakes of *verify*, a row each."""

from grader.questions.rows import in_cells

WALK = """def draw(w):
    return int({pick})

out = []
for i, t in enumerate(drafts):
    if {accept}:
        out.append(int(t))
        continue
    w = {weights}
    if w.sum() <= 0:
        w = p[i]
    out = {kept} + {replace}
    {stop}
else:
    return {end}
return out"""
RIGHT = {
    "pick": "np.flatnonzero(np.cumsum(w) > last * np.cumsum(w)[-1])[0]",
    "accept": "u[i] * q[i, t] < p[i, t]",
    "weights": "np.maximum(p[i] - q[i], 0)",
    "kept": "out",
    "replace": "[draw(w)]",
    "stop": "break",
    "end": "out + [draw(p[len(drafts)])]",
}


MISTAKES = in_cells(
    "verify",
    "drafts, p, q, u, last",
    {
        "replaced from p": (
            "draw the replacement from the probability that the target has beyond the draft's: max(p - q, 0), not p",
            WALK.format(**RIGHT | {"weights": "p[i]"}),
        ),
        "ratio turned": (
            "the two models are swapped: a draft is accepted if u * q < p",
            WALK.format(**RIGHT | {"accept": "u[i] * p[i, t] < q[i, t]"}),
        ),
        "absolute difference": (
            "if the draft has more probability than the target, nothing is left to draw: max(p - q, 0), not |p - q|",
            WALK.format(**RIGHT | {"weights": "np.abs(p[i] - q[i])"}),
        ),
        "difference turned": (
            "the target's surplus is p - q, not q - p",
            WALK.format(**RIGHT | {"weights": "np.maximum(q[i] - p[i], 0)"}),
        ),
        "on after a rejection": (
            "the first rejection ends the round: later drafts followed a token that isn't there",
            WALK.format(**RIGHT | {"stop": "continue"}),
        ),
        "the rejected kept": (
            "the rejected draft isn't emitted: its replacement is",
            WALK.format(**RIGHT | {"kept": "out + [int(t)]"}),
        ),
        "no token of its own": (
            "if all drafts are accepted the target adds one more, from the extra row of p",
            WALK.format(**RIGHT | {"end": "out"}),
        ),
        "no replacement": (
            "a rejected draft is replaced with a draw, not just dropped",
            WALK.format(**RIGHT | {"replace": "[]"}),
        ),
        "the last row": (
            "after n drafts the next token's distribution is p[n], not p[n - 1]",
            WALK.format(**RIGHT | {"end": "out + [draw(p[len(drafts) - 1])]"}),
        ),
        "likeliest": (
            "a draw takes the token at which the running sum passes last, not the likeliest token",
            WALK.format(**RIGHT | {"pick": "np.argmax(w)"}),
        ),
        "not the whole weight": (
            "the weights of a replacement don't add up to 1: compare the running sum with last times their total",
            WALK.format(
                **RIGHT | {"pick": "min(np.searchsorted(np.cumsum(w), last, side='right'), len(w) - 1)"}
            ),
        ),
        "at the border": (
            "a running sum equal to last times the total isn't above it: draw the next token",
            WALK.format(**RIGHT | {"pick": "np.flatnonzero(np.cumsum(w) >= last * np.cumsum(w)[-1])[0]"}),
        ),
        "greedy check": (
            "a draft is accepted by chance, u * q < p, not only if it is the target's likeliest token",
            WALK.format(**RIGHT | {"accept": "t == p[i].argmax()"}),
        ),
    },
)
