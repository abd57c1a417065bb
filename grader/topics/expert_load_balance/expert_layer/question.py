"""Ask *expert layer*, and weigh its parts."""

import numpy as np

from grader.questions import Part, RanksQuestion
from grader.topics.expert_load_balance.expert_layer import cases
from grader.topics.expert_load_balance.expert_layer.mistakes import MISTAKES
from grader.topics.expert_load_balance.shared import (
    ALL,
    HIDDEN,
    LESSON,
    NEAR,
    OF_COUNTS,
    PAD,
    PUBLIC,
    UP_TO,
    WIDER,
    bytes_between,
    padded,
    picks_between,
    to_everybody,
)

QUESTION = RanksQuestion(
    id="expert_load_balance.expert_layer",
    notebook="ranks",
    asks="expert_layer(comm, x, topk_ids, topk_weights, gate, up, down): the layer's result for this rank's tokens, (tokens, hidden). A token's result is the sum over its experts of weight times the expert's output. gate, up and down hold only the matrices of this rank's experts, len(gate) of each",
    entry="expert_layer",
    parts=(
        Part(
            "values",
            5,
            "ranks",
            asks="{public} and hidden ones, "
            + UP_TO
            + ": every token's result is what one process with all experts computes",
        ),
        Part(
            "bytes",
            4,
            "bytes sent",
            asks="a token crosses once to each other rank that needs it, with its choices and weights in the dtypes that they have, and one result row comes back: no rank sends more",
        ),
        Part("exchanges", 1, "exchanges", asks="at most five exchanges"),
    ),
    reference=cases.layer,
    rtol=1e-5,
    atol=1e-5,
    public=tuple(cases.layered(np.random.default_rng(50 + i), kind) for i, kind in enumerate(PUBLIC)),
    hidden=lambda rng: [cases.layered(rng, kind) for kind in HIDDEN],
    near=lambda rng, numbers: cases.layered(rng, NEAR, numbers),
    of_tokens=3,
    most_bytes=cases.most_of_layer,
    model=f"for each token and each rank that has one of its experts, a row of x, of topk_ids and of topk_weights, and one result row for each that came; {OF_COUNTS}",
    most_exchanges=5,
    habits={
        "a row a choice": (
            "a row travels for each choice, there and back: a token goes once to a rank, and one row, already summed, comes home",
            cases.layer_habit(picks_between, choice=True),
        ),
        "a result a choice": (
            "a result comes home for each choice: weigh and sum on the rank of the experts, so that one row comes back",
            cases.layer_habit(bytes_between, picks_between),
        ),
        "padded": (PAD, cases.layer_habit(lambda each, per: padded(bytes_between(each, per)))),
        "to everybody": (ALL, cases.layer_habit(lambda each, per: to_everybody(each))),
        "in float64": (WIDER, cases.layer_in_float64),
        "twice as wide": (
            "the results are float64, twice as wide as the rows that came: .astype(x.dtype) before they travel",
            cases.layer_habit(bytes_between, wide=2),
        ),
    },
    whence=cases.whose_experts,
    where=f'{LESSON}/b_exchange.ipynb, "There and back, line by line"',
    hints=(
        "Your dispatch brings rows and choices to the ranks of their experts. What else must a rank know so that it can send back one row for each row that arrived?",
        "Send topk_weights[token], too. On the experts' side add weight times result into one array, with one row for each row that arrived. Send this array back with send and receive swapped, and add its rows to the tokens that you sent, in the same order.",
        "for e in range(per): r, j = np.nonzero(ids == first + e); out[r] += shares[r, j, None] * expert(rows[r], gate[e], up[e], down[e]); back = comm.send_rows(out, receive, send); np.add.at(y, token, back)",
    ),
    mistakes=MISTAKES,
)
