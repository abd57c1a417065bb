"""List right answers to *dispatch tokens* in other forms."""

FORMS = {
    "a token at a time": [
        (
            "token = np.concatenate([np.flatnonzero(g) for g in goes])",
            "token = [t for g in goes for t in range(len(x)) if g[t]]\n    token = np.array(token, int)",
        )
    ],
    "lists, also of no rows": [
        (
            "return comm.send_rows(x[token], send, receive), comm.send_rows(topk_ids[token], send, receive)",
            "rows, ids = comm.send_rows(x[token], send, receive), comm.send_rows(topk_ids[token], send, receive)\n    return list(rows), np.array(list(ids))",
        )
    ],
    "choices and rows in one": [
        (
            "return comm.send_rows(x[token], send, receive), comm.send_rows(topk_ids[token], send, receive)",
            "both = comm.send_rows(np.concatenate([x, topk_ids.astype(x.dtype)], axis=1)[token], send, receive)\n    return both[:, : x.shape[1]], both[:, x.shape[1] :].astype(int)",
        )
    ],
    "choices first, as small numbers": [
        (
            "return comm.send_rows(x[token], send, receive), comm.send_rows(topk_ids[token], send, receive)",
            "ids = comm.send_rows(topk_ids[token].astype(np.uint16), send, receive)\n    return [comm.send_rows(x[token], send, receive), ids]",
        )
    ],
    "counts for each expert": [
        (
            "receive = comm.exchange_counts(send)",
            "each = np.array([np.bincount(topk_ids[g].reshape(-1), minlength=experts)[r * per : (r + 1) * per] for r, g in enumerate(goes)])\n    each[:, 0] = send\n    receive = comm.exchange_counts(each)[:, 0]",
        )
    ],
    "lists for splits": [("send = np.array([g.sum() for g in goes])", "send = [int(g.sum()) for g in goes]")],
    "random ones with a seed": [
        (
            "receive = comm.exchange_counts(send)",
            "np.random.default_rng(7).random(3)\n    receive = comm.exchange_counts(send)",
        )
    ],
}
