"""Ask *replicated layer*, and weigh its parts."""

import numpy as np

from grader.questions import Part, RanksQuestion
from grader.topics.expert_load_balance.replicated_layer import cases
from grader.topics.expert_load_balance.replicated_layer.mistakes import MISTAKES
from grader.topics.expert_load_balance.shared import LESSON, NEAR, OF_COUNTS, UP_TO

QUESTION = RanksQuestion(
    id="expert_load_balance.replicated_layer",
    notebook="ranks",
    asks="replicated_layer(comm, x, topk_ids, topk_weights, holders, gate, up, down): the same layer with copies of experts, where holders[e, r] says whether rank r has a copy of expert e. gate, up and down belong to this rank's copies, in the order of the experts' numbers. A choice with a copy at home stays at home, and the copies of an expert share its other choices",
    entry="replicated_layer",
    bonus=True,
    parts=(
        Part(
            "values",
            2,
            "ranks",
            asks="{public} and hidden ones, " + UP_TO + ": every token's result, each expert counted once",
        ),
        Part("bytes", 1, "bytes sent", asks="nothing travels for a choice that has a copy at home"),
        Part(
            "busiest",
            2,
            "busiest",
            asks="no rank receives many more bytes than it would if copies took turns",
        ),
    ),
    reference=cases.layer,
    rtol=1e-5,
    atol=1e-5,
    public=tuple(cases.drawn(np.random.default_rng(90 + i), kind) for i, kind in enumerate(cases.PUBLIC)),
    hidden=lambda rng: [cases.drawn(rng, kind) for kind in cases.HIDDEN],
    near=lambda rng, numbers: cases.drawn(rng, NEAR, numbers),
    of_tokens=3,
    moved=cases.swapped,
    most_bytes=cases.most_bytes,
    model=f"for each choice without a copy at home, a row of x, of topk_ids and of topk_weights; a result row for each row that a rank may receive; {OF_COUNTS}",
    most_exchanges=5,
    most_received=cases.most_received,
    habits={
        "the first copy": (
            "choices without a copy at home all go to the first copy: its rank receives the most rows and sends the most results home; let copies take turns",
            cases.habit(cases.by_copy(cases.first_copy)),
        ),
        "one copy a rank": (
            "all tokens of a rank go to the same copy of an expert, so that some copies have those of two ranks: take turns by token",
            cases.habit(cases.by_copy(lambda number, rank, copies: copies[rank % len(copies)])),
        ),
        "never at home": (
            "a choice with a copy on its token's own rank travels all the same: it stays where it is",
            cases.habit(
                cases.by_copy(lambda number, rank, copies: copies[number % len(copies)], at_home=False)
            ),
        ),
        "the first copy, never at home": (
            "all choices go to the first copy, also those with a copy on their token's own rank: these stay, the others take turns",
            cases.habit(cases.by_copy(cases.first_copy, at_home=False)),
        ),
    },
    whence=cases.whose,
    where=f'{LESSON}/c_placement.ipynb, "Where experts live, and copies of them"',
    hints=(
        "First decide on a rank for each choice, as an array of the shape of topk_ids. The rest is your expert_layer with this array instead of topk_ids // per.",
        "A choice stays at home where holders[topk_ids, comm.rank]. Elsewhere np.flatnonzero(holders[e]) lists the copies, and a number that grows by one with each token selects one of them. Two ranks may both have a token's expert, so tell each rank which choices are its own, for instance by sending -1 for the others.",
        "place[t, j] = comm.rank if holders[e, comm.rank] else copies[(t + comm.rank) % len(copies)]; send np.where(place[token] == to[:, None], topk_ids[token], -1), with the destination `to` of each row that is sent",
    ),
    mistakes=MISTAKES,
)
