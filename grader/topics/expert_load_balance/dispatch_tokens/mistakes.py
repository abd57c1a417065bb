"""List the mistakes of *dispatch tokens*, a row each."""

import numpy as np

from grader.questions import Mistake
from grader.questions.rows import edited
from grader.topics.expert_load_balance.dispatch_tokens.cases import dispatched_rows
from grader.topics.expert_load_balance.shared import to_ranks
from grader.topics.expert_load_balance.shared_mistakes import EVERYBODY, IDS, NEEDED, ROWS


def as_sent(each):
    """Return a row for each choice, so that a token with two experts on a rank comes twice."""
    per, found = each[0][2] // len(each), []
    for rank in range(len(each)):
        parts = [np.repeat(np.arange(len(c)), (c // per == rank).sum(axis=1)) for _, c, _ in each]
        found.append(
            tuple(np.concatenate([given[i][p] for given, p in zip(each, parts, strict=True)]) for i in (0, 1))
        )
    return found


def without_own(each):
    per, found = each[0][2] // len(each), []
    for rank in range(len(each)):
        here = [(c // per == rank).any(axis=1) & (sender != rank) for sender, (_, c, _) in enumerate(each)]
        found.append(
            tuple(np.concatenate([given[i][h] for given, h in zip(each, here, strict=True)]) for i in (0, 1))
        )
    return found


def first_rows(each):
    """Only tokens whose first choice is here, with all of their choices."""
    per = each[0][2] // len(each)
    return [
        tuple(np.concatenate([given[i][given[1][:, 0] // per == rank] for given in each]) for i in (0, 1))
        for rank in range(len(each))
    ]


def other_ranks(each):
    """Place expert e on rank e % ranks."""
    return dispatched_rows(each, lambda experts: experts % len(each))


def by_token(each):
    """Return every sender's rows one token after another, cut as if they were ordered by rank."""
    per, ranks, found = each[0][2] // len(each), len(each), [([], []) for _ in each]
    for x, topk_ids, _ in each:
        goes = to_ranks(topk_ids, per, ranks)
        token = np.nonzero(goes.T)[0]
        for rank, rows in enumerate(np.split(token, np.cumsum(goes.sum(axis=1))[:-1])):
            for out, given in zip(found[rank], (x, topk_ids), strict=True):
                out.append(given[rows])
    return [tuple(map(np.concatenate, one)) for one in found]


def own_numbers(each):
    """Experts as the receiver counts them, and those of other ranks as -1."""
    per, found = each[0][2] // len(each), []
    for rank, (rows, ids) in enumerate(dispatched_rows(each)):
        found.append((rows, np.where(ids // per == rank, ids - rank * per, -1)))
    return found


TOKEN = "token = np.concatenate([np.flatnonzero(g) for g in goes])"
COUNTED = "send = np.array([g.sum() for g in goes])"
RECEIVE = "receive = comm.exchange_counts(send)"
RETURN = "    return comm.send_rows(x[token], send, receive), comm.send_rows(topk_ids[token], send, receive)"
TWICE = "token = np.concatenate([np.repeat(np.arange(len(x)), (topk_ids // per == rank).sum(axis=1)) for rank in range(comm.ranks)])"
TWICE_COUNTED = "send = np.array([(topk_ids // per == rank).sum() for rank in range(comm.ranks)])"
FILTERED = f"""    rows, ids = {ROWS}, {IDS}
    here = (ids // per == comm.rank).any(axis=1)
    return rows[here], ids[here]"""
IN_ONE = """    both = comm.send_rows(np.concatenate([x, topk_ids], axis=1)[token], send, receive)
    return both[:, : x.shape[1]], both[:, x.shape[1] :]"""
MERGED = f"""    rows, ids = {ROWS}, {IDS}
    here, row = [], 0
    while row < len(rows):
        here.append(row)
        row += (ids[row] // per == comm.rank).sum()
    return rows[here], ids[here]"""


MISTAKES = (
    Mistake(
        "a row a choice",
        "a token with two experts on a rank arrives there twice: once is enough, because its row of topk_ids names both experts",
        wrong=as_sent,
        edits=(
            (TOKEN, TWICE),
            (COUNTED, TWICE_COUNTED),
        ),
    ),
    Mistake(
        "own ones left out",
        "a rank's own tokens for its own experts belong to its rows, too: let send_rows deliver them, which crosses no link",
        wrong=without_own,
        edits=((NEEDED, f"{NEEDED} & (rank != comm.rank)"),),
    ),
    Mistake(
        "first choices alone",
        "here only the first choice decides where a token goes: send the token to every rank that has one of its experts",
        wrong=first_rows,
        edits=((NEEDED, "topk_ids[:, 0] // per == rank"),),
    ),
    Mistake(
        "to the rank of that number",
        "expert e is on rank e // per: these are the tokens of experts placed by e % comm.ranks",
        wrong=other_ranks,
        edits=(("topk_ids // per", "topk_ids % comm.ranks"),),
    ),
    Mistake(
        "one token after another",
        "the rows are sent in the order of the tokens: all rows for rank 0 must come first, then those for rank 1",
        wrong=by_token,
        edits=((TOKEN, "token = np.nonzero(np.array(goes).T)[0]"),),
    ),
    Mistake(
        "other numbers",
        "here the experts are renumbered from 0 on each rank: pass on the rows of topk_ids unchanged",
        wrong=own_numbers,
        edits=(
            (
                RETURN,
                f"    mine = {IDS}\n    return {ROWS}, np.where(mine // per == comm.rank, mine - comm.rank * per, -1)",
            ),
        ),
    ),
    edited("in one array of float64", (RETURN, IN_ONE), part="bytes", told_as="in float64"),
    edited("without counts", (RECEIVE, "receive = send")),
    edited(
        "none where there is no token",
        (RECEIVE, "if not len(x):\n        return x, topk_ids\n    receive = comm.exchange_counts(send)"),
    ),
    edited(
        "counts after the rows",
        (
            RECEIVE,
            "receive = comm.exchange_counts(send) if comm.rank else comm.send_rows(send, [1] * comm.ranks, [1] * comm.ranks)",
        ),
    ),
    edited("everybody", (NEEDED, EVERYBODY), (RETURN, FILTERED), part="bytes", told_as="to everybody"),
    edited(
        "rows of zeros to everybody",
        (NEEDED, f"({NEEDED} | ~x.any(axis=1))"),
        (RETURN, FILTERED),
        part="bytes",
    ),
    edited(
        "twice and thrown away",
        (TOKEN, TWICE),
        (COUNTED, TWICE_COUNTED),
        (RETURN, MERGED),
        part="bytes",
        told_as="a row a choice",
    ),
    edited("in four", (RETURN, f"    comm.exchange_counts(send)\n{RETURN}"), part="exchanges"),
)
