"""Ask *route*, and weigh its parts."""

import numpy as np

from grader.questions import Call, NumpyQuestion, Part
from grader.questions.draws import between
from grader.topics.moe_routing.route import cases
from grader.topics.moe_routing.route.mistakes import MISTAKES
from grader.topics.moe_routing.shared import LESSON
from grader.topics.moe_routing.shared_concepts import short

QUESTION = NumpyQuestion(
    id="moe_routing.route",
    notebook="concepts",
    asks="route(x, router, k, softmax_first): (topk_ids, topk_weights), both (tokens, k), for x (tokens, hidden) and router (experts, hidden). Each token gets the k experts with the largest logits x @ router.T, best first, and the lower number first among equals. Their weights are a softmax over all experts if softmax_first is True, otherwise a softmax over the k chosen logits",
    entry="route",
    parts=(Part("values", 3, "calls"),),
    reference=cases.route,
    public=(
        Call(short((*cases.router(cases.FIRST, 3, 4, 2), 2, False)), "top-k, then softmax"),
        Call(short((*cases.router(cases.FIRST, 3, 4, 2), 2, True)), "softmax, then top-k"),
        Call((np.eye(2), np.array([[1.0, 0.0], [1.0, 2.0], [0.0, 2.0], [1.0, 2.0]]), 2, False), "equals"),
        Call((np.zeros((0, 2)), np.ones((3, 2)), 2, False), "no tokens"),
    ),
    hidden=lambda rng: [
        *(
            Call(
                (
                    *cases.router(rng, between(rng, 2, 20), n, between(rng, 2, 9)),
                    between(rng, 2, n - 1),
                    first,
                )
            )
            for n in (4, 9, 16)
            for first in (False, True)
        ),
        *(Call((*cases.router(rng, 5, 6, 3), 1, first), "one expert a token") for first in (False, True)),
        *(Call((*cases.router(rng, 4, 5, 3), 5, first), "every expert") for first in (False, True)),
        *(Call((*cases.equals(rng, 40, 8), 3, first), "equal logits") for first in (False, True)),
        *(
            Call((*cases.router(rng, 6, 8, 4, cases.SHIFT), 3, first), "large logits")
            for first in (False, True)
        ),
        *(Call((*cases.far_apart(rng, 8, 9, 4), 4, first), "logits far apart") for first in (False, True)),
        Call((*cases.router(rng, 0, 7, 4), 3, True), "no tokens"),
    ],
    where=f'{LESSON}/a_experts.ipynb, "The router"',
    hints=(
        "The chosen experts are the same with both rules, because a softmax doesn't change the order. Which sort keeps equal logits in their order?",
        "np.argsort(-logits, axis=1, kind='stable')[:, :k] chooses. For the weights take np.take_along_axis before or after a softmax along the experts; subtract each row's maximum before np.exp.",
        "topk_ids = np.argsort(-logits, axis=1, kind='stable')[:, :k]; s = logits if softmax_first else np.take_along_axis(logits, topk_ids, 1); p = np.exp(s - s.max(1, keepdims=True)); p /= p.sum(1, keepdims=True)",
    ),
    mistakes=MISTAKES,
)
