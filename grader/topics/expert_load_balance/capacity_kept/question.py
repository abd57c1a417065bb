"""Ask *capacity kept*, and weigh its parts."""

import numpy as np

from grader.questions import Call, NumpyQuestion, Part
from grader.topics.expert_load_balance.capacity_kept import cases
from grader.topics.expert_load_balance.capacity_kept.mistakes import MISTAKES
from grader.topics.expert_load_balance.shared import LESSON

QUESTION = NumpyQuestion(
    id="expert_load_balance.capacity_kept",
    notebook="concepts",
    asks="capacity_kept(topk_ids, experts, factor): (capacity, kept). capacity is the largest number of pairs that an expert takes, factor times the even share, rounded up. kept says for each entry of topk_ids (tokens, top_k) whether it finds room, if all first choices are admitted in the order of the tokens, then all second ones, and so on",
    entry="capacity_kept",
    parts=(Part("values", 3, "calls"),),
    reference=cases.capacity_kept,
    public=(
        Call((np.array([[0, 1], [0, 1], [0, 2], [1, 0]]), 4, 1.0), "room for two"),
        Call(cases.limited(np.random.default_rng(4), 1.25), "a quarter more than even"),
    ),
    hidden=lambda rng: (
        [Call(cases.limited(rng, factor), "another routing") for factor in (0.5, 1.0, 1.25, 1.5)]
        + [
            Call(cases.limited(rng, 1.0, 3), "three experts a token"),
            Call(cases.limited(rng, 8.0), "room for all"),
        ]
        + [Call(cases.limited(rng, 1.25, 1), "one expert a token")]
        + [Call(cases.just_above(rng, by), "a limit just above a whole number") for by in (2.0**-8, 2.0**-12)]
    ),
    where=f'{LESSON}/a_busiest.ipynb, "A limit, and what it drops"',
    hints=(
        "The order matters: walk through column 0 of topk_ids from top to bottom, then through column 1. What do you have to remember on the way?",
        "Keep a count for each expert. A choice is kept while its expert's count is below the capacity, and only a kept choice adds to the count. The capacity is math.ceil(factor * tokens * top_k / experts).",
        "for j in range(top_k): for t in range(tokens): e = topk_ids[t, j]; kept[t, j] = taken[e] < capacity; taken[e] += kept[t, j]",
    ),
    mistakes=MISTAKES,
)
