"""Ask *least hot share*, and weigh its parts."""

from grader.questions import Call, NumpyQuestion, Part
from grader.questions.draws import between
from grader.topics.expert_load_balance.least_hot_share import cases
from grader.topics.expert_load_balance.least_hot_share.mistakes import MISTAKES
from grader.topics.expert_load_balance.shared import LESSON

QUESTION = NumpyQuestion(
    id="expert_load_balance.least_hot_share",
    notebook="concepts",
    asks="least_hot_share(top_k, experts, devices, slowdown): the hot_share, at least top_k / experts, at which hot_slowdown returns `slowdown` (1 or more), or math.inf if all tokens are not enough",
    entry="least_hot_share",
    parts=(Part("values", 2, "calls"),),
    reference=cases.least_hot_share,
    public=(
        Call((2, 8, 8, 2.5), "two and a half times"),
        Call((2, 8, 4, 1.5), "two experts a device"),
        Call((8, 64, 8, 2.5), "more than all tokens can do"),
    ),
    hidden=lambda rng: (
        [
            Call(cases.reached(rng, each, 0.2, 0.9), f"{each} experts a device")
            for each in (1, 2, 4)
            for _ in range(2)
        ]
        + [Call(cases.beyond(rng), "more than all tokens can do") for _ in range(2)]
        + [Call(cases.just_enough(rng), "all tokens, just enough")]
        + [Call((between(rng, 1, 3), 8 * each, 8, 1.0), "no slowdown") for each in (1, 2, 4)]
    ),
    where=f'{LESSON}/a_busiest.ipynb, "The step is the busiest device\'s"',
    hints=(
        "Write the slowdown of a hot expert as an equation with hot_share unknown. It is linear.",
        "Solve hot_share + (per - 1) (top_k - hot_share) / (experts - 1) = slowdown top_k / devices for hot_share. A share can't exceed 1.",
        "beside = (per - 1) / (experts - 1); share = (slowdown * top_k / devices - beside * top_k) / (1 - beside); share if share <= 1 else math.inf",
    ),
    mistakes=MISTAKES,
)
