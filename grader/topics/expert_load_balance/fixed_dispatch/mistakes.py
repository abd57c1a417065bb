"""List the mistakes of *fixed dispatch*, a row each."""

import numpy as np

from grader.questions import Mistake
from grader.questions.rows import edited
from grader.topics.expert_load_balance.fixed_dispatch.cases import masked_rows

HERE = "here = (topk_ids // per == rank).any(axis=1)"
EMPTY = "slots = np.full((comm.ranks, room, x.shape[1] + topk_ids.shape[1]), -1, np.float32)"
MINE = "mine = rows[(ids == comm.rank * per + e).any(axis=1)]"
PUT = "out[e, : len(mine)], counts[e] = mine, len(mine)"
SENT = "got = comm.send_rows(slots.reshape(-1, slots.shape[2]), [room] * comm.ranks, [room] * comm.ranks)"


def padding_as_tokens(each):
    """Empty slots say expert 0, so the rank of expert 0 takes them for tokens of zeros."""
    found, per, room = masked_rows(each), each[0][2] // len(each), each[0][3]
    rows, counts = (part.copy() for part in found[0])
    at = 0
    for x, topk_ids, _, _ in each:
        here = (topk_ids // per == 0).any(axis=1)
        wanted = (topk_ids[here] == 0).any(axis=1)
        part = np.concatenate([x[here][wanted], np.zeros((room - here.sum(), x.shape[1]), np.float32)])
        rows[0, at : at + len(part)] = part
        at += len(part)
    rows[0, at:], counts[0] = 0, at
    return [(rows, counts), *found[1:]]


def left_in_slots(each):
    """Each expert's rows stay in the slot in which they came."""
    per, room, found = each[0][2] // len(each), each[0][3], []
    for rank, (rows, counts) in enumerate(masked_rows(each)):
        held = np.zeros_like(rows)
        for sender, (x, topk_ids, _, _) in enumerate(each):
            here = np.flatnonzero((topk_ids // per == rank).any(axis=1))
            for slot, token in enumerate(here):
                for e in range(per):
                    if rank * per + e in topk_ids[token]:
                        held[e, sender * room + slot] = x[token]
        found.append((held, counts))
    return found


def without_own(each):
    found = masked_rows(each)
    for rank, (rows, counts) in enumerate(found):
        others = [
            given if sender != rank else (given[0][:0], given[1][:0], *given[2:])
            for sender, given in enumerate(each)
        ]
        rows[:], counts[:] = masked_rows(others)[rank]
    return found


MISTAKES = (
    Mistake(
        "padding taken for tokens",
        "an empty slot says expert 0 here, so expert 0 gets rows of zeros: mark empty slots with a number that no expert has",
        wrong=padding_as_tokens,
        edits=(
            (
                EMPTY,
                EMPTY.replace(
                    "np.full((comm.ranks, room, x.shape[1] + topk_ids.shape[1]), -1, np.float32)",
                    "np.zeros((comm.ranks, room, x.shape[1] + topk_ids.shape[1]), np.float32)",
                ),
            ),
        ),
    ),
    Mistake(
        "left where they came",
        "each expert's rows come first in its room, without gaps: here they stay in the slots in which they arrived",
        wrong=left_in_slots,
        edits=(
            (
                PUT,
                "at = np.flatnonzero((ids == comm.rank * per + e).any(axis=1))\n        out[e, at], counts[e] = mine, len(mine)",
            ),
        ),
    ),
    Mistake(
        "all rows for every expert",
        "an expert gets only the rows of tokens that chose it, not all rows that reached its rank",
        wrong=lambda each: masked_rows(
            each,
            lambda topk_ids, e: (topk_ids // (each[0][2] // len(each)) == e // (each[0][2] // len(each))).any(
                axis=1
            ),
        ),
        edits=((MINE, "mine = rows[(ids >= 0).all(axis=1)]"),),
    ),
    Mistake(
        "first choices alone",
        "only the first choice of a token counts here: a token belongs to each of its experts",
        wrong=lambda each: masked_rows(each, lambda topk_ids, e: topk_ids[:, 0] == e),
        edits=((MINE, "mine = rows[ids[:, 0] == comm.rank * per + e]"),),
    ),
    Mistake(
        "own ones left out",
        "a rank's own tokens for its own experts belong to its rows, too",
        wrong=without_own,
        edits=((HERE, f"{HERE} & (rank != comm.rank)"),),
    ),
    edited("no row of zeros", (MINE, f"{MINE}\n        mine = mine[mine.any(axis=1)]")),
    edited(
        "equal rows once",
        (MINE, f"{MINE}\n        mine = mine[np.sort(np.unique(mine, axis=0, return_index=True)[1])]"),
    ),
    edited("all room counted", (PUT, "out[e, : len(mine)], counts[e] = mine, len(out[e])")),
    edited("a row of zeros is an empty slot", ("mine = rows[", "mine = rows[rows.any(axis=1) & ")),
    edited(
        "equal rows kept once",
        (
            "out[e, : len(mine)]",
            "mine = mine[np.sort(np.unique(mine, axis=0, return_index=True)[1])]\n        out[e, : len(mine)]",
        ),
    ),
    edited(
        "counts first",
        (
            SENT,
            "comm.exchange_counts([room] * comm.ranks)\n    got = comm.send_rows(slots.reshape(-1, slots.shape[2]), [room] * comm.ranks, [room] * comm.ranks)",
        ),
        part="exchanges",
    ),
    edited(
        "a slot for each pair",
        (EMPTY, "room = room * topk_ids.shape[1]\n    " + EMPTY),
        (
            "out = np.zeros((per, len(rows), x.shape[1]), np.float32)",
            "out = np.zeros((per, len(rows) // topk_ids.shape[1], x.shape[1]), np.float32)",
        ),
        part="bytes",
        told_as="a slot a pair",
    ),
    edited(
        "in float64",
        (SENT, SENT.replace("slots.reshape", "slots.astype(float).reshape")),
        part="bytes",
        told_as="in float64",
    ),
)
