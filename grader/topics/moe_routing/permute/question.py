"""Ask *permute*, and weigh its parts."""

import numpy as np

from grader.questions import Call, NumpyQuestion, Part
from grader.questions.draws import between
from grader.topics.moe_routing.permute import cases
from grader.topics.moe_routing.permute.mistakes import MISTAKES
from grader.topics.moe_routing.shared import LESSON
from grader.topics.moe_routing.shared_concepts import drawn_ids

QUESTION = NumpyQuestion(
    id="moe_routing.permute",
    notebook="concepts",
    asks="permute(topk_ids, experts, tile): (sorted_token_ids, inv_permuted_idx). sorted_token_ids[row] is the (token, expert) pair in that row, token * k + slot, or -1 for padding. inv_permuted_idx[token, slot] is the row of that pair. Experts are in ascending order, and padding at the end of each expert's rows fills its last tile. Within an expert, pairs keep their order",
    entry="permute",
    parts=(Part("values", 3, "calls"),),
    reference=cases.permute,
    public=(
        Call((np.array([[0, 2], [2, 0], [2, 3]]), 4, 4), "an expert without a token"),
        Call((np.array([[1, 0], [1, 0], [0, 1]]), 2, 1), "no padding"),
        Call((np.zeros((0, 2), int), 3, 4), "no tokens"),
    ),
    hidden=lambda rng: [
        *(
            Call((drawn_ids(rng, between(rng, 6, 40), n, k), n, between(rng, 2, 8)))
            for n, k in ((4, 2), (9, 3), (16, 2))
        ),
        Call((drawn_ids(rng, 24, 6, 2, only=[1, 2, 4]), 6, 8), "experts without tokens"),
        Call((np.zeros((between(rng, 5, 30), 1), int), 5, 4), "all tokens on one expert"),
        Call((drawn_ids(rng, 60, 3, 2), 3, 1), "many tokens, no padding"),
        Call((drawn_ids(rng, 0, 8, 2), 8, 16), "no tokens"),
    ],
    where=f'{LESSON}/b_order_and_tiles.ipynb, "Count, scan, permute"',
    hints=(
        "Number all pairs in reading order: token 0's k pairs, then token 1's. Which sort brings the pairs of one expert together and keeps their order?",
        "order = np.argsort(topk_ids.ravel(), kind='stable') lists the pairs by expert. An expert's i-th pair gets the row expert_offsets[expert] + i, and i is the pair's index in this list minus the number of pairs of lower experts.",
        "e = flat[order]; row = expert_offsets[e] + np.arange(len(flat)) - before[e], with before the running sum of the loads from 0; then sorted_token_ids[row] = order, inv_permuted_idx[order] = row",
    ),
    mistakes=MISTAKES,
)
