"""List the mistakes of *hot slowdown*, a row each."""

from grader.questions.rows import in_cells

HOT = """per = experts // devices
each = {each}
return {busiest} / {mean}"""
RIGHT_HOT = {
    "each": "(top_k - hot_share) / (experts - 1)",
    "busiest": "max(hot_share + (per - 1) * each, per * each)",
    "mean": "(top_k / devices)",
}


def hot(**changed: str) -> str:
    return HOT.format(**RIGHT_HOT | changed)


MISTAKES = in_cells(
    "hot_slowdown",
    "top_k, experts, devices, hot_share",
    {
        "alone on its device": (
            "the hot expert shares its device with others, whose tokens count, too",
            hot(busiest="max(hot_share, per * each)"),
        ),
        "one too many": (
            "the hot expert is one of the experts on its device: only experts // devices - 1 others share the device",
            hot(busiest="max(hot_share + per * each, per * each)"),
        ),
        "spread over all": (
            "the remaining pairs are spread over the other experts, of which there are experts - 1",
            hot(each="(top_k - hot_share) / experts"),
        ),
        "one expert a token": (
            "a token has top_k pairs: the others share top_k - hot_share",
            hot(each="(1 - hot_share) / (experts - 1)"),
        ),
        "over experts": (
            "an even load is top_k / devices per device: this divides by the even load of an expert",
            hot(mean="(top_k / experts)"),
        ),
        "always the hot one": (
            "expert 0 can also be colder than the rest: then another device is the busiest",
            hot(busiest="(hot_share + (per - 1) * each)"),
        ),
    },
)


SHORTCUTS = {"an expert a device": lambda k, experts, devices, share: share * devices / k}
