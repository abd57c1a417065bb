"""Dispatch and combine, wrong: each row is told by a mistake where values are lost, by a habit where bytes are."""

from grader.questions.tables import changed

DISPATCH = "expert_load_balance.dispatch_tokens"
LAYER = "expert_load_balance.expert_layer"
REPLICATED = "expert_load_balance.replicated_layer"

GOES = "goes = [(chosen // per == rank).any(axis=1) for rank in range(comm.ranks)]"
NEEDED = "(chosen // per == rank).any(axis=1)"
TOKEN = "token = np.concatenate([np.flatnonzero(g) for g in goes])"
COUNTED = "send = np.array([g.sum() for g in goes])"
RECEIVE = "receive = comm.exchange_counts(send)"
BACK = "comm.send_rows(out, receive, send)"
ADD = "out[r] += shares[r, j, None] * expert"
COPY = "copies[(t + comm.rank) % len(copies)]"
AWAY = "np.argwhere(~holders[chosen, comm.rank])"
OWN_CHOICES = "np.where(place[token] == to[:, None], chosen[token], -1)"
RETURN = "    return comm.send_rows(x[token], send, receive), comm.send_rows(chosen[token], send, receive)"
ROWS = "comm.send_rows(x[token], send, receive)"
PICKS = "comm.send_rows(chosen[token], send, receive)"
TWICE = "token = np.concatenate([np.repeat(np.arange(len(x)), (chosen // per == rank).sum(axis=1)) for rank in range(comm.ranks)])"
TWICE_COUNTED = "send = np.array([(chosen // per == rank).sum() for rank in range(comm.ranks)])"
EVERYBODY = "np.ones(len(x), bool)"
FILTERED = f"""    rows, picks = {ROWS}, {PICKS}
    here = (picks // per == comm.rank).any(axis=1)
    return rows[here], picks[here]"""
IN_ONE = """    both = comm.send_rows(np.concatenate([x, chosen], axis=1)[token], send, receive)
    return both[:, : x.shape[1]], both[:, x.shape[1] :]"""
MERGED = f"""    rows, picks = {ROWS}, {PICKS}
    sender = np.repeat(np.arange(comm.ranks), receive)
    same = (rows[1:] == rows[:-1]).all(axis=1) & (sender[1:] == sender[:-1])
    here = np.concatenate([np.ones(len(rows[:1]), bool), ~same])
    return rows[here], picks[here]"""

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

WRONG = {
    DISPATCH: {
        "a row a choice": changed((TOKEN, TWICE), (COUNTED, TWICE_COUNTED), mistake="a row a choice"),
        "own ones left out": changed(
            (NEEDED, f"{NEEDED} & (rank != comm.rank)"), mistake="own ones left out"
        ),
        "first choices alone": changed(
            (NEEDED, "chosen[:, 0] // per == rank"), mistake="first choices alone"
        ),
        "other numbers": changed(
            (
                RETURN,
                f"    mine = {PICKS}\n    return {ROWS}, np.where(mine // per == comm.rank, mine - comm.rank * per, -1)",
            ),
            mistake="other numbers",
        ),
        "to the rank of that number": changed(
            ("chosen // per", "chosen % comm.ranks"), mistake="to the rank of that number"
        ),
        "one token after another": changed(
            (TOKEN, "token = np.nonzero(np.array(goes).T)[0]"), mistake="one token after another"
        ),
        "in one array of float64": changed((RETURN, IN_ONE), part="bytes", mistake="in float64"),
        "without counts": changed((RECEIVE, "receive = send")),
        "none where there is no token": changed(
            (RECEIVE, "if not len(x):\n        return x, chosen\n    receive = comm.exchange_counts(send)")
        ),
        "counts after the rows": changed(
            (
                RECEIVE,
                "receive = comm.exchange_counts(send) if comm.rank else comm.send_rows(send, [1] * comm.ranks, [1] * comm.ranks)",
            )
        ),
        "everybody": changed((NEEDED, EVERYBODY), (RETURN, FILTERED), part="bytes", mistake="to everybody"),
        "twice and thrown away": changed(
            (TOKEN, TWICE), (COUNTED, TWICE_COUNTED), (RETURN, MERGED), part="bytes", mistake="a row a choice"
        ),
        "in four": changed((RETURN, f"    comm.exchange_counts(send)\n{RETURN}"), part="exchanges"),
    },
    LAYER: {
        "no weights": changed((ADD, "out[r] += expert"), mistake="no weights"),
        "own experts alone": changed(
            (NEEDED, f"{NEEDED} & (rank == comm.rank)"), mistake="own experts alone"
        ),
        "others alone": changed((NEEDED, f"{NEEDED} & (rank != comm.rank)"), mistake="others alone"),
        "first choices alone": changed(
            ("r, j = np.nonzero(picks == e)", "r = np.flatnonzero(picks[:, 0] == e)\n        j = 0 * r"),
            (NEEDED, "(chosen[:, :1] // per == rank).any(axis=1)"),
            mistake="first choices alone",
        ),
        "weights turned": changed(
            ("shares[r, j, None]", "shares[r, -1 - j, None]"), mistake="weights turned"
        ),
        "weights made to add up to 1": changed(
            (ADD, "out[r] += (shares[r, j] / shares[r].sum(axis=1))[:, None] * expert"),
            mistake="weights made to add up to 1",
        ),
        "gone where nothing came": changed(
            (
                f"    np.add.at(y, token, {BACK})",
                f"    if not len(token) and not len(rows):\n        return y\n    np.add.at(y, token, {BACK})",
            )
        ),
        "the last result wins": changed(
            (f"np.add.at(y, token, {BACK})", f"y[token] = {BACK}"), mistake="the last result wins"
        ),
        "every expert from the first": changed((" - comm.rank * per", "")),
        "in the order they came": changed((BACK, f"{BACK}[::-1]")),
        "the wrong way home": changed((BACK, "comm.send_rows(out, send, receive)")),
        "in float64": changed(
            ("out = np.zeros_like(rows)", "out = np.zeros(rows.shape)"), part="bytes", mistake="twice as wide"
        ),
        "in 16 bits": changed((BACK, "comm.send_rows(out.astype(np.float16), receive, send)")),
        "in one array of float64": changed(
            (
                f"rows = {ROWS}",
                "both = comm.send_rows(np.hstack([x, chosen, weights])[token], send, receive)\n    h, k = x.shape[1], chosen.shape[1]\n    rows = np.ascontiguousarray(both[:, :h])",
            ),
            (PICKS, "both[:, h : h + k].astype(int)"),
            ("comm.send_rows(weights[token], send, receive)", "both[:, h + k :]"),
            part="bytes",
            mistake="in float64",
        ),
        "everybody": changed((NEEDED, EVERYBODY), part="bytes", mistake="to everybody"),
        "counts again on the way home": changed(
            (BACK, "comm.send_rows(out, receive, comm.exchange_counts(receive))"), part="exchanges"
        ),
    },
    REPLICATED: {
        "no weights": changed((ADD, "out[r] += expert"), mistake="no weights"),
        "weights made to add up to 1": changed(
            (ADD, "out[r] += (shares[r, j] / shares[r].sum(axis=1))[:, None] * expert"),
            mistake="weights made to add up to 1",
        ),
        "every copy counts": changed(
            (
                "goes = [(place == rank).any(axis=1) for rank in range(comm.ranks)]",
                "goes = [holders[chosen, rank].any(axis=1) for rank in range(comm.ranks)]",
            ),
            (OWN_CHOICES, "chosen[token]"),
            mistake="every copy counts",
        ),
        "at home alone": changed(
            (AWAY, "[]"),
            ("picks == e", "(picks == e) & (comm.rank >= 0)"),
            (OWN_CHOICES, "np.where(holders[chosen[token], comm.rank], chosen[token], -1)"),
            mistake="at home alone",
        ),
        "elsewhere alone": changed(
            (
                "goes = [(place == rank).any(axis=1)",
                "goes = [(place == rank).any(axis=1) & (rank != comm.rank)",
            ),
            mistake="elsewhere alone",
        ),
        "twice where both have it": changed((OWN_CHOICES, "chosen[token]")),
        "slots by the expert's number": changed(
            (
                "for slot, e in enumerate(np.flatnonzero(holders[:, comm.rank])):",
                "for slot, e in enumerate(range(len(gate))):",
            )
        ),
        "always the first copy": changed((COPY, "copies[0]"), part="busiest", mistake="the first copy"),
        "the first copy, results home with the bytes": changed(
            (COPY, "copies[0]"), part="bytes", mistake="the first copy"
        ),
        "one copy a rank": changed(
            (COPY, "copies[comm.rank % len(copies)]"), part="busiest", mistake="one copy a rank"
        ),
        "the first copy, in four exchanges": changed(
            (COPY, "copies[0]"), (f"rows = {ROWS}", IN_FOUR), part="busiest"
        ),
        "the first copy, four rows as one": changed(
            (COPY, "copies[0]"), (f"rows = {ROWS}", FOUR_AS_ONE), part="busiest"
        ),
        "never at home": changed((AWAY, "np.ndindex(chosen.shape)"), part="bytes"),
        "never at home, by the token": changed(
            (AWAY, "np.ndindex(chosen.shape)"),
            (COPY, "copies[t % len(copies)]"),
            part="bytes",
            mistake="never at home",
        ),
    },
}
