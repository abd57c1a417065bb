"""List right answers to *expert layer* in other forms."""



FORMS = {
        "row by row": [
            (
                "        r, j = np.nonzero(ids == e)\n        out[r] += shares[r, j, None] * expert(rows[r], gate[e], up[e], down[e])",
                "        for r, j in np.argwhere(ids == e):\n            out[r] += shares[r, j] * expert(rows[r : r + 1], gate[e], up[e], down[e])[0]",
            )
        ],
        "summed wide, sent narrow": [
            ("out = np.zeros_like(rows)", "out = np.zeros(rows.shape)"),
            ("comm.send_rows(out, receive, send)", "comm.send_rows(out.astype(x.dtype), receive, send)"),
        ],
        "rows, choices and weights in one": [
            (
                "rows = comm.send_rows(x[token], send, receive)",
                "k, h = topk_ids.shape[1], x.shape[1]\n    all_of_it = comm.send_rows(np.hstack([x, topk_ids.astype(x.dtype), topk_weights])[token], send, receive)\n    rows = np.ascontiguousarray(all_of_it[:, :h])",
            ),
            ("comm.send_rows(topk_ids[token], send, receive)", "all_of_it[:, h : h + k].astype(int)"),
            ("comm.send_rows(topk_weights[token], send, receive)", "all_of_it[:, h + k :]"),
        ],
        "own tokens without a detour": [
            (
                "    return y",
                "    mine = y\n    return mine.tolist() if comm.rank % 2 and len(mine) else mine",
            )
        ],
    }
