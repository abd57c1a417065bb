"""Ask *balance gradient*, and weigh its parts."""

import numpy as np

from grader.questions import Call, NumpyQuestion, Part
from grader.questions.draws import between, odd
from grader.topics.expert_load_balance.balance_gradient import cases
from grader.topics.expert_load_balance.balance_gradient.mistakes import MISTAKES
from grader.topics.expert_load_balance.shared import LESSON

QUESTION = NumpyQuestion(
    id="expert_load_balance.balance_gradient",
    notebook="concepts",
    asks="balance_gradient(x, router, topk_ids): (the auxiliary loss, its gradient with respect to router). The loss is experts times the sum over experts of (share of pairs) (mean probability), where the probabilities are the softmax of x @ router. The shares come from counts and have no gradient",
    entry="balance_gradient",
    parts=(Part("values", 3, "calls"),),
    reference=cases.balance_gradient,
    rtol=1e-7,
    atol=1e-10,
    public=(
        Call(cases.routed(np.random.default_rng(5), 5, 3, 1), "three experts"),
        Call(cases.routed(np.random.default_rng(6), 12, 4, 2), "two of four"),
    ),
    hidden=lambda rng: (
        [
            Call(cases.routed(rng, odd(rng, 9, 40), between(rng, 3, 8), top_k), "another router")
            for top_k in (1, 2, 3)
        ]
        + [Call(cases.routed(rng, 21, 6, 2, 8.0), "a router that is sure of itself")]
        + [Call(cases.routed(rng, 21, 6, 2, 3000.0), "logits in the thousands")]
    ),
    where=f'{LESSON}/a_busiest.ipynb, "Make the router choose evenly"',
    hints=(
        "Treat the shares of pairs as constants f. The loss is then experts times the mean over tokens of p @ f. How does a softmax change when a logit moves?",
        "For one token, d(p @ f) / d(logits) = p (f - p @ f). Multiply it by experts / tokens. Because logits = x @ router, the gradient with respect to the router is x.T @ G, where G is the gradient with respect to the logits.",
        "f = np.bincount(topk_ids.reshape(-1), minlength=experts) / topk_ids.size; g = experts / tokens * p * (f - (p @ f)[:, None]); experts * (f @ p.mean(0)), x.T @ g",
    ),
    mistakes=MISTAKES,
)
