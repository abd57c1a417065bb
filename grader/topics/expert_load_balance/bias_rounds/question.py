"""Ask *bias rounds*, and weigh its parts."""

import numpy as np

from grader.questions import Call, NumpyQuestion, Part
from grader.questions.draws import between
from grader.topics.expert_load_balance.bias_rounds import cases
from grader.topics.expert_load_balance.bias_rounds.mistakes import MISTAKES
from grader.topics.expert_load_balance.shared import LESSON

QUESTION = NumpyQuestion(
    id="expert_load_balance.bias_rounds",
    notebook="concepts",
    asks="bias_rounds(scores, top_k, rate, rounds): (the bias after the last round, the loads of every round). The bias starts at 0. Each round chooses each token's top_k experts by score + bias (among equals the lower number), counts their loads, then moves each expert's bias by rate, down if its load is above the mean and up if it is below",
    entry="bias_rounds",
    parts=(Part("values", 2, "calls"),),
    reference=cases.bias_rounds,
    public=(
        Call((cases.scores(np.random.default_rng(7), 6, 3), 1, 0.1, 2), "two rounds"),
        Call((cases.scores(np.random.default_rng(8), 40, 4), 2, 0.02, 5), "five rounds"),
    ),
    hidden=lambda rng: (
        [
            Call(
                (cases.scores(rng, 8 * between(rng, 4, 8), 8), k, 0.01 * between(rng, 1, 9), 6),
                "other scores",
            )
            for k in (1, 2, 3)
        ]
        + [Call((cases.scores(rng, 41, 5), 2, 0.03, 12), "many rounds")]
        + [Call((cases.equal_sums(rng, 40, experts), 2, 0.25, 4), "equal sums") for experts in (5, 24)]
        + [Call((np.tile(np.eye(4) + 0.1, (3, 1)), 1, 0.01, 3), "loads that are even from the start")]
    ),
    where=f'{LESSON}/a_busiest.ipynb, "Make the router choose evenly"',
    hints=(
        "One round takes three lines: choose, count, move. Which result of a round does the next round start from?",
        "np.argsort(-(scores + bias), axis=1, kind='stable')[:, :top_k] chooses; np.sign(loads.mean() - loads) is +1 below the mean and -1 above it.",
        "for each round: topk_ids = np.argsort(-(scores + bias), axis=1, kind='stable')[:, :top_k]; loads = np.bincount(topk_ids.reshape(-1), minlength=len(bias)); bias = bias + rate * np.sign(loads.mean() - loads)",
    ),
    mistakes=MISTAKES,
)
