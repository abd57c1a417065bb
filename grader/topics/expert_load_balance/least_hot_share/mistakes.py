"""List the mistakes of *least hot share*, a row each."""

from grader.questions.rows import in_cells

SHARE = """beside = {beside}
share = (slowdown * {mean} - {fixed}) / (1 - beside)
return {result}"""
RIGHT_SHARE = {
    "beside": "(experts // devices - 1) / (experts - 1)",
    "mean": "top_k / devices",
    "fixed": "beside * top_k",
    "result": "share if share <= 1 + 1e-12 else math.inf",
}


def share(**changed: str) -> str:
    return SHARE.format(**RIGHT_SHARE | changed)


MISTAKES = in_cells(
    "least_hot_share",
    "top_k, experts, devices, slowdown",
    {
        "more than all": (
            "a share above 1 does not exist: more than all tokens cannot choose an expert",
            share(result="share"),
        ),
        "cut off": (
            "where even all tokens are not enough the answer is math.inf: a share of 1 does not reach it",
            share(result="min(1.0, share)"),
        ),
        "alone on its device": (
            "the hot expert shares its device with others, which carry a part of it",
            share(beside="0.0"),
        ),
        "spread over all": (
            "the rest is spread over experts - 1 others",
            share(beside="(experts // devices - 1) / experts"),
        ),
        "not one side": (
            "what lies beside the hot expert shrinks as its share grows: bring all of hot_share to one side",
            "beside = (experts // devices - 1) / (experts - 1)\nshare = slowdown * top_k / devices - beside * top_k\nreturn share if share <= 1 else math.inf",
        ),
        "all are not enough": (
            "a share of exactly 1 is enough: math.inf begins above it",
            share(result="share if share < 1 - 1e-12 else math.inf"),
        ),
        "from nothing": (
            "shares are counted from the even one up: no slowdown is what the even share gives",
            share(result="0.0 if slowdown <= 1 else share if share <= 1 + 1e-12 else math.inf"),
        ),
        "top-1": ("even loads are top_k / devices, not 1 / devices", share(mean="1 / devices")),
    },
)
