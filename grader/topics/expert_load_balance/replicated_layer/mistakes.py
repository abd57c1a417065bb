"""List the mistakes of *replicated layer*, a row each."""

from grader.questions import Mistake
from grader.questions.rows import edited
from grader.topics.expert_load_balance.replicated_layer.cases import layer
from grader.topics.expert_load_balance.shared_mistakes import ADD, ROWS, made_to_add_up, without_weights

COPY = "copies[(t + comm.rank) % len(copies)]"
AWAY = "np.argwhere(~holders[topk_ids, comm.rank])"
OWN_CHOICES = "np.where(place[token] == to[:, None], topk_ids[token], -1)"
IN_FOUR = """rows = np.zeros((receive.sum(), x.shape[1]), x.dtype)
    for part in range(4):
        out_, in_ = (np.concatenate([np.arange(n) for n in split]) % 4 == part for split in (send, receive))
        from_ = np.repeat(np.arange(comm.ranks), receive)[in_]
        splits = [np.bincount(one, minlength=comm.ranks) for one in (to[out_], from_)]
        rows[in_] = comm.send_rows(x[token[out_]], *splits)"""
FOUR_AS_ONE = """blocks = [-(-np.array(split) // 4) for split in (send, receive)]
    at, back = (
        np.concatenate([4 * b[:r].sum() + np.arange(n) for r, n in enumerate(s)]).astype(int)
        for s, b in zip((send, receive), blocks)
    )
    wide = np.zeros((4 * blocks[0].sum(), x.shape[1]), x.dtype)
    wide[at] = x[token]
    rows = comm.send_rows(wide.reshape(-1, 4 * x.shape[1]), *blocks).reshape(-1, x.shape[1])[back]"""


MISTAKES = (
    without_weights(layer),
    made_to_add_up(layer),
    Mistake(
        "every copy counts",
        "an expert with several copies is counted several times: only one copy may compute a choice",
        wrong=lambda each: layer(each, times=lambda topk_ids, holders: holders.sum(axis=1)[topk_ids]),
        edits=(
            (
                "goes = [(place == rank).any(axis=1) for rank in range(comm.ranks)]",
                "goes = [holders[topk_ids, rank].any(axis=1) for rank in range(comm.ranks)]",
            ),
            (OWN_CHOICES, "topk_ids[token]"),
        ),
    ),
    Mistake(
        "at home alone",
        "only choices with a copy on the token's own rank are in the sum",
        wrong=lambda each: layer(each, only=lambda home: home),
        edits=(
            (AWAY, "[]"),
            ("ids == e", "(ids == e) & (comm.rank >= 0)"),
            (OWN_CHOICES, "np.where(holders[topk_ids[token], comm.rank], topk_ids[token], -1)"),
        ),
    ),
    Mistake(
        "elsewhere alone",
        "choices with a copy on the token's own rank are missing from the sum",
        wrong=lambda each: layer(each, only=lambda home: ~home),
        edits=(
            (
                "goes = [(place == rank).any(axis=1)",
                "goes = [(place == rank).any(axis=1) & (rank != comm.rank)",
            ),
        ),
    ),
    edited("no weights", (ADD, "out[r] += expert"), told_as="no weights"),
    edited(
        "weights made to add up to 1",
        (ADD, "out[r] += (shares[r, j] / shares[r].sum(axis=1))[:, None] * expert"),
        told_as="weights made to add up to 1",
    ),
    edited("twice where both have it", (OWN_CHOICES, "topk_ids[token]")),
    edited(
        "slots by the expert's number",
        (
            "for slot, e in enumerate(np.flatnonzero(holders[:, comm.rank])):",
            "for slot, e in enumerate(range(len(gate))):",
        ),
    ),
    edited("always the first copy", (COPY, "copies[0]"), part="busiest", told_as="the first copy"),
    edited(
        "the first copy, results home with the bytes",
        (COPY, "copies[0]"),
        part="bytes",
        told_as="the first copy",
    ),
    edited("the first copy, of many tokens", (COPY, f"{COPY[:-1]} * (len(x) <= 350)]"), part="busiest"),
    edited(
        "the first copy, of experts from 64 on",
        (AWAY, "np.argwhere(~holders[topk_ids, comm.rank] | (topk_ids >= 64))"),
        (COPY, f"{COPY[:-1]} * (topk_ids[t, j] < 64)]"),
        part="bytes",
    ),
    edited(
        "two copies of three",
        (COPY, "copies[(t + comm.rank) % min(2, len(copies))]"),
        part="busiest",
    ),
    edited(
        "one copy a rank",
        (COPY, "copies[comm.rank % len(copies)]"),
        part="busiest",
        told_as="one copy a rank",
    ),
    edited(
        "the first copy, in four exchanges", (COPY, "copies[0]"), (f"rows = {ROWS}", IN_FOUR), part="busiest"
    ),
    edited(
        "the first copy, four rows as one",
        (COPY, "copies[0]"),
        (f"rows = {ROWS}", FOUR_AS_ONE),
        part="busiest",
    ),
    edited("never at home", (AWAY, "np.ndindex(topk_ids.shape)"), part="bytes"),
    edited(
        "never at home, by the token",
        (AWAY, "np.ndindex(topk_ids.shape)"),
        (COPY, "copies[t % len(copies)]"),
        part="bytes",
        told_as="never at home",
    ),
)
