"""Ask *verify*, and weigh its parts."""

import numpy as np

from grader.questions import Call, NumpyQuestion, Part
from grader.questions.draws import between
from grader.topics.next_bottleneck.shared import LESSON
from grader.topics.next_bottleneck.verify import cases
from grader.topics.next_bottleneck.verify.mistakes import MISTAKES

QUESTION = NumpyQuestion(
    id="next_bottleneck.verify",
    notebook="concepts",
    asks="verify(drafts, p, q, u, last): the tokens that a round emits, in order. Draft i, drawn from q[i], is accepted if u[i] * q[i][token] < p[i][token]. The first rejected draft is replaced by a draw from max(p[i] - q[i], 0) and ends the round. If all are accepted, a draw from p[len(drafts)] follows. A draw takes the first token at which the running sum of the weights exceeds last times their total",
    entry="verify",
    parts=(Part("values", 3, "calls"),),
    reference=cases.verify,
    public=(
        Call(
            (
                np.array([1, 0]),
                np.array([[0.2, 0.8], [0.9, 0.1], [0.5, 0.5]]),
                np.array([[0.5, 0.5], [0.6, 0.4]]),
                np.array([0.9, 0.5]),
                0.7,
            ),
            "all accepted",
        ),
        Call(
            (
                np.array([0, 1]),
                np.array([[0.6, 0.3, 0.1], [0.3, 0.1, 0.6], [0.2, 0.2, 0.6]]),
                np.array([[0.2, 0.2, 0.6], [0.2, 0.7, 0.1]]),
                np.array([0.9, 0.5]),
                0.1,
            ),
            "the second rejected",
        ),
    ),
    hidden=lambda rng: (
        [Call(cases.case(rng, between(rng, 3, 6), between(rng, 6, 12), -1), "all accepted") for _ in range(4)]
        + [Call(cases.case(rng, 5, between(rng, 6, 12), 0), "the first rejected") for _ in range(5)]
        + [
            Call(cases.case(rng, 5, between(rng, 6, 12), between(rng, 1, 3)), "one in the middle rejected")
            for _ in range(6)
        ]
        + [Call(cases.case(rng, 4, 8, 3), "the last rejected") for _ in range(2)]
        + [
            Call(
                (
                    np.array([0]),
                    np.array([[0.0, 0.5, 0.5], [1.0, 0.0, 0.0]]),
                    np.array([[0.5, 0.25, 0.25]]),
                    np.array([0.0]),
                    0.9,
                ),
                "a draft that the target never says",
            ),
            Call(
                (
                    np.array([2]),
                    np.array([[0.1, 0.2, 0.7], [0.0, 0.25, 0.75]]),
                    np.array([[0.4, 0.4, 0.2]]),
                    np.array([0.99]),
                    0.25,
                ),
                "a draw on a border",
            ),
        ]
    ),
    where=f'{LESSON}/d_speculation.ipynb, and lesson 06, "Accept and resample"',
    hints=(
        "Walk along the drafts and stop at the first one that is rejected.",
        "Replace a rejected draft with a token that the target likes more than the draft model does: draw it from the weights max(p - q, 0), which needn't add up to 1. If all drafts are accepted, draw one more token from the extra row of p.",
        "for i, t in enumerate(drafts): if not u[i] * q[i, t] < p[i, t]: return drafts[:i] and a draw from np.maximum(p[i] - q[i], 0); draw: ends = np.cumsum(w); np.flatnonzero(ends > last * ends[-1])[0]",
    ),
    mistakes=MISTAKES,
)
