"""Ask *count*, and weigh its parts."""

import numpy as np

from grader.questions import Call, NumpyQuestion, Part
from grader.questions.draws import between
from grader.topics.moe_routing.count import cases
from grader.topics.moe_routing.count.mistakes import MISTAKES
from grader.topics.moe_routing.shared import LESSON
from grader.topics.moe_routing.shared_concepts import drawn_ids

QUESTION = NumpyQuestion(
    id="moe_routing.count",
    notebook="concepts",
    asks="count(topk_ids, experts, tile): (loads, expert_offsets) for topk_ids (tokens, k). loads holds each expert's number of (token, expert) pairs. expert_offsets holds experts + 1 numbers: the first row of each expert if each expert's rows are padded to whole tiles, then the end of the last expert's rows",
    entry="count",
    parts=(Part("values", 2, "calls"),),
    reference=cases.loads_and_offsets,
    public=(
        Call((np.array([[0, 2], [2, 0], [2, 3]]), 4, 4), "an expert without a token"),
        Call((np.array([[0, 1], [1, 0]]), 2, 2), "whole tiles"),
        Call((np.array([[1], [1], [1]]), 2, 1), "a tile of one row"),
        Call((np.zeros((0, 2), int), 3, 4), "no tokens"),
    ),
    hidden=lambda rng: [
        *(
            Call((drawn_ids(rng, between(rng, 5, 40), n, k), n, between(rng, 2, 16)))
            for n, k in ((4, 2), (9, 3), (16, 1))
        ),
        Call(
            (drawn_ids(rng, 24, 6, 2, only=[1, 2, 4]), 6, 8),
            "experts without tokens, the first and the last among them",
        ),
        Call((drawn_ids(rng, 16, 4, 4), 4, 8), "loads that are whole tiles"),
        Call((drawn_ids(rng, 19, 5, 2), 5, 3), "tiles of three rows"),
        Call((np.zeros((between(rng, 5, 30), 1), int), 5, 4), "all tokens on one expert"),
        Call((drawn_ids(rng, 0, 8, 2), 8, 16), "no tokens"),
    ],
    where=f'{LESSON}/b_order_and_tiles.ipynb, "Count, scan, permute"',
    hints=(
        "You need a histogram and a running sum. What does the running sum add up?",
        "np.bincount(topk_ids.ravel(), minlength=experts) counts. A load takes ceil(load / tile) tiles, which is none if the load is 0. The expert_offsets are the running sum of the padded loads, with a 0 in front.",
        "loads = np.bincount(topk_ids.ravel(), minlength=experts); expert_offsets = np.concatenate([[0], np.cumsum(-(-loads // tile) * tile)])",
    ),
    mistakes=MISTAKES,
)
