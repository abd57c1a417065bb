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
            "a share can't exceed 1: return math.inf if all tokens are not enough",
            share(result="share"),
        ),
        "cut off": (
            "if even all tokens are not enough, the answer is math.inf: here it is 1",
            share(result="min(1.0, share)"),
        ),
        "alone on its device": (
            "the hot expert shares its device with others, whose pairs count as well",
            share(beside="0.0"),
        ),
        "spread over all": (
            "the remaining pairs are spread over experts - 1 others",
            share(beside="(experts // devices - 1) / experts"),
        ),
        "not one side": (
            "the pairs of the experts next to the hot one shrink as its share grows: collect all terms with hot_share on one side",
            "beside = (experts // devices - 1) / (experts - 1)\nshare = slowdown * top_k / devices - beside * top_k\nreturn share if share <= 1 else math.inf",
        ),
        "all are not enough": (
            "a share of exactly 1 is enough: math.inf begins above it",
            share(result="share if share < 1 - 1e-12 else math.inf"),
        ),
        "from nothing": (
            "the answer is never below the even share: a slowdown of 1 needs just the even share",
            share(result="0.0 if slowdown <= 1 else share if share <= 1 + 1e-12 else math.inf"),
        ),
        "top-1": ("even loads are top_k / devices, not 1 / devices", share(mean="1 / devices")),
    },
)
