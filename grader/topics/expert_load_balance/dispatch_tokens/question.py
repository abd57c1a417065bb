"""Ask *dispatch tokens*, and weigh its parts."""

import numpy as np

from grader.questions import Part, RanksQuestion
from grader.topics.expert_load_balance.dispatch_tokens import cases
from grader.topics.expert_load_balance.dispatch_tokens.mistakes import MISTAKES
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
    id="expert_load_balance.dispatch_tokens",
    notebook="ranks",
    asks="dispatch_tokens(comm, x, topk_ids, experts): on every rank, the rows of all tokens, from all ranks, that chose one of its experts, and these tokens' rows of topk_ids. Each token appears once, and tokens are sorted by sender, then by their number on the sender. Rank r has experts r * per to (r + 1) * per - 1, where per = experts // comm.ranks",
    entry="dispatch_tokens",
    parts=(
        Part(
            "values",
            4,
            "ranks",
            asks="{public} and hidden ones, " + UP_TO + ": every rank has the right rows in the right order",
        ),
        Part(
            "bytes",
            3,
            "bytes sent",
            asks="each row and its choices cross once to each other rank that needs them, in the dtypes that they have: no rank sends more",
        ),
        Part("exchanges", 1, "exchanges", asks="at most three exchanges"),
    ),
    reference=cases.dispatched_rows,
    public=tuple(
        cases.dispatched(np.random.default_rng(40 + i), kind, plain=True) for i, kind in enumerate(PUBLIC)
    ),
    hidden=lambda rng: [cases.dispatched(rng, kind) for kind in HIDDEN],
    near=lambda rng, numbers: cases.dispatched(rng, NEAR, numbers),
    holding=cases.with_own,
    of_tokens=2,
    most_bytes=cases.most_of_dispatch,
    model=f"for each token and each rank that has one of its experts, a row of x and a row of topk_ids; {OF_COUNTS}",
    most_exchanges=3,
    habits={
        "a row a choice": (
            "a row travels for each choice: a token with two experts on a rank is needed there once",
            cases.dispatch_habit(picks_between),
        ),
        "padded": (PAD, cases.dispatch_habit(lambda each, per: padded(bytes_between(each, per)))),
        "to everybody": (ALL, cases.dispatch_habit(lambda each, per: to_everybody(each))),
        "in float64": (WIDER, cases.dispatch_in_float64),
    },
    whence=cases.from_whom,
    where=f'{LESSON}/b_exchange.ipynb, "There and back, line by line"',
    hints=(
        "Before you send anything: which of your tokens does rank 2 need, and how many are there? Every rank can work this out for its own tokens.",
        "goes = (topk_ids // per == rank).any(axis=1) marks the tokens that a rank needs. List these tokens one rank after another, exchange the number of tokens per rank with exchange_counts, and use the result as `receive`.",
        "token = np.concatenate([np.flatnonzero(g) for g in goes]); send = np.array([g.sum() for g in goes]); receive = comm.exchange_counts(send); comm.send_rows(x[token], send, receive), and the same for topk_ids[token]",
    ),
    mistakes=MISTAKES,
    rtol=0.0,
    atol=0.0,
)
