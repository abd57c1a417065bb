"""List the mistakes of *expert layer*, a row each."""

import numpy as np

from grader.questions import Mistake
from grader.questions.rows import edited
from grader.topics.expert_load_balance.expert_layer.cases import layer
from grader.topics.expert_load_balance.shared_mistakes import (
    ADD,
    EVERYBODY,
    IDS,
    NEEDED,
    ROWS,
    made_to_add_up,
    without_weights,
)
from kernels.expert_load_balance import reference

BACK = "comm.send_rows(out, receive, send)"


def of_weight(each) -> list[np.ndarray]:
    gate, up, down = (np.concatenate([given[i] for given in each]) for i in (3, 4, 5))
    return [reference.moe_of_experts(x, ids, w, gate, up, down, w != 0) for x, ids, w, *_ in each]


MISTAKES = (
    without_weights(layer),
    made_to_add_up(layer),
    Mistake(
        "own experts alone",
        "only experts on the token's own rank are in the sum: add the results that come home from other ranks",
        wrong=lambda each: layer(each, only=lambda ranks, rank: ranks == rank),
        edits=((NEEDED, f"{NEEDED} & (rank == comm.rank)"),),
    ),
    Mistake(
        "others alone",
        "a token's experts on its own rank are missing from the sum: a rank also sends to itself, which crosses no link",
        wrong=lambda each: layer(each, only=lambda ranks, rank: ranks != rank),
        edits=((NEEDED, f"{NEEDED} & (rank != comm.rank)"),),
    ),
    Mistake(
        "choices of weight 0 left out",
        "choices of weight 0 are left out, but 0 times a NaN is NaN: they count like any other",
        wrong=of_weight,
        edits=((NEEDED, "((topk_ids // per == rank) & (topk_weights != 0)).any(axis=1)"),),
    ),
    Mistake(
        "first choices alone",
        "only the first choice of each token is in the sum",
        wrong=lambda each: layer(each, only=lambda ranks, rank: np.arange(ranks.shape[1]) + 0 * ranks == 0),
        edits=(
            ("r, j = np.nonzero(ids == e)", "r = np.flatnonzero(ids[:, 0] == e)\n        j = 0 * r"),
            (NEEDED, "(topk_ids[:, :1] // per == rank).any(axis=1)"),
        ),
    ),
    Mistake(
        "the last result wins",
        "each token keeps the result of only one rank, the last: add up all rows that come home, np.add.at(y, token, back)",
        wrong=lambda each: layer(each, only=lambda ranks, rank: ranks == ranks.max(axis=1, keepdims=True)),
        edits=((f"np.add.at(y, token, {BACK})", f"y[token] = {BACK}"),),
    ),
    Mistake(
        "weights turned",
        "each result is multiplied by the weight of another choice: column j of topk_weights belongs to column j of topk_ids",
        wrong=lambda each: layer(each, weights=lambda w: w[:, ::-1]),
        edits=(("shares[r, j, None]", "shares[r, -1 - j, None]"),),
    ),
    edited("no weights", (ADD, "out[r] += expert"), told_as="no weights"),
    edited(
        "weights made to add up to 1",
        (ADD, "out[r] += (shares[r, j] / shares[r].sum(axis=1))[:, None] * expert"),
        told_as="weights made to add up to 1",
    ),
    edited(
        "gone where nothing came",
        (
            f"    np.add.at(y, token, {BACK})",
            f"    if not len(token) and not len(rows):\n        return y\n    np.add.at(y, token, {BACK})",
        ),
    ),
    edited("every expert from the first", (" - comm.rank * per", "")),
    edited("in the order they came", (BACK, f"{BACK}[::-1]")),
    edited("the wrong way home", (BACK, "comm.send_rows(out, send, receive)")),
    edited(
        "in float64",
        ("out = np.zeros_like(rows)", "out = np.zeros(rows.shape)"),
        part="bytes",
        told_as="twice as wide",
    ),
    edited("in 16 bits", (BACK, "comm.send_rows(out.astype(np.float16), receive, send)")),
    edited(
        "in one array of float64",
        (
            f"rows = {ROWS}",
            "both = comm.send_rows(np.hstack([x, topk_ids, topk_weights])[token], send, receive)\n    h, k = x.shape[1], topk_ids.shape[1]\n    rows = np.ascontiguousarray(both[:, :h])",
        ),
        (IDS, "both[:, h : h + k].astype(int)"),
        ("comm.send_rows(topk_weights[token], send, receive)", "both[:, h + k :]"),
        part="bytes",
        told_as="in float64",
    ),
    edited("everybody", (NEEDED, EVERYBODY), part="bytes", told_as="to everybody"),
    edited(
        "everybody, of many tokens and experts",
        (NEEDED, f"{NEEDED} | (len(x) >= 500 and per >= 8)"),
        part="bytes",
    ),
    edited("kept where the first number is 0", (NEEDED, f"{NEEDED} & (x[:, 0] != 0)")),
    edited(
        "counts again on the way home",
        (BACK, "comm.send_rows(out, receive, comm.exchange_counts(receive))"),
        part="exchanges",
    ),
)
