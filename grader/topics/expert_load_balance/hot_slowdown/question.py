"""Ask *hot slowdown*, and weigh its parts."""

from grader.questions import Call, NumpyQuestion, Part
from grader.topics.expert_load_balance.hot_slowdown import cases
from grader.topics.expert_load_balance.hot_slowdown.mistakes import MISTAKES
from grader.topics.expert_load_balance.shared import LESSON
from grader.topics.expert_load_balance.shared_concepts import hot, hot_slowdown

QUESTION = NumpyQuestion(
    id="expert_load_balance.hot_slowdown",
    notebook="concepts",
    asks="hot_slowdown(top_k, experts, devices, hot_share): how many times as long as with even loads the experts take if a share hot_share of all tokens have expert 0 among their top_k. All other pairs are spread evenly over the other experts, and each device holds experts / devices experts with consecutive numbers",
    entry="hot_slowdown",
    parts=(Part("values", 2, "calls"),),
    reference=hot_slowdown,
    public=(
        Call((2, 8, 8, 1.0), "all tokens, an expert a device"),
        Call((2, 8, 4, 0.5), "two experts a device"),
        Call((1, 4, 4, 0.25), "even"),
    ),
    hidden=lambda rng: (
        [Call(hot(rng, each, 0.2, 0.9), f"{each} experts a device") for each in (1, 2, 4) for _ in range(2)]
        + [Call(cases.cold(rng), "an expert that is colder than the rest")]
    ),
    where=f'{LESSON}/a_busiest.ipynb, "The step is the busiest device\'s"',
    hints=(
        "Count in pairs per token: the hot expert has hot_share of them, and all experts together have top_k. How many pairs per token does each other expert have?",
        "Each other expert has (top_k - hot_share) / (experts - 1). The hot expert shares its device with experts // devices - 1 of these, and any other device holds experts // devices of them.",
        "each = (top_k - hot_share) / (experts - 1); per = experts // devices; max(hot_share + (per - 1) * each, per * each) / (top_k / devices)",
    ),
    mistakes=MISTAKES,
)
