"""Ask *fixed dispatch*, and weigh its parts."""

import numpy as np

from grader.questions import Part, RanksQuestion
from grader.topics.expert_load_balance.fixed_dispatch import cases
from grader.topics.expert_load_balance.fixed_dispatch.mistakes import MISTAKES
from grader.topics.expert_load_balance.shared import HIDDEN, LESSON, NEAR, PUBLIC, UP_TO, WIDER

QUESTION = RanksQuestion(
    id="expert_load_balance.fixed_dispatch",
    notebook="ranks",
    asks="fixed_dispatch(comm, x, topk_ids, experts, room): (rows, counts) of this rank's experts in the masked layout, with one exchange of fixed size. rows (per, comm.ranks * room, hidden) holds each expert's real rows first, in the order of senders and tokens, then zeros. counts (per,) says how many rows are real",
    entry="fixed_dispatch",
    parts=(
        Part(
            "values",
            3,
            "ranks",
            asks="{public} and hidden ones, "
            + UP_TO
            + ": each expert's rows, without gaps, and their number",
        ),
        Part(
            "bytes",
            1,
            "bytes sent",
            asks="`room` slots to each other rank, each with a row of x and its choices, at four bytes per number",
        ),
        Part("exchanges", 1, "exchanges", asks="a single exchange, so no counts first"),
    ),
    reference=cases.masked_rows,
    public=tuple(
        cases.fixed(np.random.default_rng(60 + i), kind, plain=True) for i, kind in enumerate(PUBLIC)
    ),
    hidden=lambda rng: [cases.fixed(rng, kind) for kind in HIDDEN],
    near=lambda rng, numbers: cases.fixed(rng, NEAR, numbers),
    holding=cases.with_own,
    of_tokens=2,
    most_bytes=cases.most_of_slots,
    model="for each other rank `room` slots, each a row of x and a row of topk_ids in float32",
    most_exchanges=1,
    habits={
        "a slot a pair": (
            "there is a slot for each (token, expert) pair: a token needs one slot on each rank, with all of its choices",
            cases.by_pairs,
        ),
        "in float64": (WIDER, cases.in_float64),
    },
    where=f'{LESSON}/e_as_served.ipynb, "Two kinds of kernels, then one"',
    hints=(
        "Every rank knows room, so every rank knows how many slots come from each other rank. What must a slot contain so that the receiver can tell whether it is empty?",
        "Fill slots (ranks, room, hidden + top_k) with -1, and put the tokens that rank r needs into slots[r], x and topk_ids side by side. Then call send_rows with [room] * comm.ranks for both send and receive. The receiver selects each expert's rows by the last columns.",
        "slots[rank, : here.sum()] = np.concatenate([x[here], topk_ids[here]], axis=1); and on arrival mine = rows[(ids == comm.rank * per + e).any(axis=1)]; out[e, : len(mine)], counts[e] = mine, len(mine)",
    ),
    mistakes=MISTAKES,
    rtol=0.0,
    atol=0.0,
    bonus=True,
)
