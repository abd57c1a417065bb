"""The window with its cap, wrong."""

from grader.questions.tables import because, changed

WINDOW = "flash_attention.window_softcap"

WRONG = {
    WINDOW: {
        "no window": changed(("& (keys[None, :] >= place - W)", ""), mistake="no window"),
        "no window, from the first key": changed(
            ("& (keys[None, :] >= place - W)", ""),
            ("max(0, tile * BLOCK_M + N - M - W)", "0 * tile"),
            mistake="no window",
        ),
        "cap after the mask": changed(
            (
                's = tl.where(seen, s, float("-inf"))',
                's = tl.where(keys[None, :] < N, tl.where(seen, s, -softcap), float("-inf"))',
            ),
            mistake="cap after the mask",
        ),
        "one key less": changed((">= place - W", "> place - W"), mistake="one key less"),
        "one key more": changed(
            (">= place - W", ">= place - W - 1"), ("N - M - W)", "N - M - W - 1)"), mistake="one key more"
        ),
        "no cap": changed(
            ("s = softcap * (1 - 2 / (tl.exp(2 * x) + 1))", "s = softcap * x"), mistake="no cap"
        ),
        "cap without its size": changed(
            ("s = softcap * (1 - 2", "s = (1 - 2"), mistake="tanh not multiplied"
        ),
        "cap before the scale": changed(
            ("(scale / softcap)", "(1.0 / softcap)"),
            ("s = softcap * (1", "s = scale * softcap * (1"),
            mistake="cap before the scale",
        ),
        "tanh that overflows": changed(
            ("(1 - 2 / (tl.exp(2 * x) + 1))", "((tl.exp(x) - tl.exp(-x)) / (tl.exp(x) + tl.exp(-x)))"),
            mistake="tanh overflows",
        ),
        "not causal": changed(("(keys[None, :] <= place)", "(keys[None, :] <= place + 1)")),
        "rows of nothing become NaN": changed(
            ('base = tl.where(m_new == float("-inf"), 0.0, m_new)', "base = m_new"),
            mistake="empty first tile",
        ),
        "every key from the start": changed(
            ("max(0, tile * BLOCK_M + N - M - W)", "0 * tile"), part="traffic"
        ),
        "the window's start as if there were as many keys as queries": changed(
            ("max(0, tile * BLOCK_M + N - M - W)", "max(0, tile * BLOCK_M - W)"), part="traffic"
        ),
        "operands widened": changed(
            ("tl.dot(q, k)", "tl.dot(q.to(tl.float32), k.to(tl.float32))"),
            (
                "acc = tl.dot(p.to(v.dtype), v, acc * alpha[:, None])",
                "acc = tl.dot(p, v.to(tl.float32), acc * alpha[:, None])",
            ),
            part="traffic",
        ),
        "masked with -1e4": changed(
            ('tl.where(seen, s, float("-inf"))', "tl.where(seen, s, -1e4)"),
            mistake="a number for minus infinity",
        ),
        "no scale": changed(("(scale / softcap)", "(1.0 / softcap)"), mistake="no scale"),
        "the usual scale": changed(("(scale / softcap)", "(D ** -0.5 / softcap)"), mistake="the usual scale"),
        "maximum from zero": changed(
            ('m = tl.full((BLOCK_M,), float("-inf"), tl.float32)', "m = tl.zeros((BLOCK_M,), tl.float32)"),
            mistake="maximum from zero",
        ),
        "interleaved heads": changed(
            ("group = head // (H // G)", "group = head % G"), mistake="interleaved heads"
        ),
        "output summed in fp16": changed(
            ("acc = tl.zeros((BLOCK_M, D), tl.float32)", "acc = tl.zeros((BLOCK_M, D), tl.float16)"),
            (
                "acc = tl.dot(p.to(v.dtype), v, acc * alpha[:, None])",
                "acc = (acc * alpha[:, None] + tl.dot(p.to(v.dtype), v)).to(tl.float16)",
            ),
            mistake="beyond fp16",
        ),
        "every key from the start, and idle programs": changed(
            ("max(0, tile * BLOCK_M + N - M - W)", "0 * tile"),
            ("(triton.cdiv(p.M, 64), p.B * p.H)", "(4 * triton.cdiv(p.M, 64), p.B * p.H)"),
            part="traffic",
        ),
    },
}

EQUIVALENT = {
    WINDOW: because(
        {
            "before the first tile the factor is exp(-inf) = 0, which leaves nothing of what the sums began with": [
                "ones: tl.zeros((BLOCK_M, D), tl.float32) -> tl.full((BLOCK_M, D), 1.0, tl.float32)",
                "ones: tl.zeros((BLOCK_M,), tl.float32) -> tl.full((BLOCK_M,), 1.0, tl.float32)",
            ],
            "a lane of a row beyond M touches its own row alone, which is never stored": [
                "no other: tl.load(q_ptrs, mask=mask_m, other=0.0) -> tl.load(q_ptrs, mask=mask_m)",
                "plus one: 0.0 -> 1.0",
            ],
            "a score of a key beyond N is set to -inf, whatever was loaded": [
                "no other: tl.load(k_ptrs + keys[None, :] * stride_kn, mask=keys[None, :] < N, other=0.0) -> tl.load(k_ptrs + keys[None, :] * stride_kn, mask=keys[None, :] < N)",
                "plus one: 0.0 -> 1.0 (3)",
            ],
            "place < N for every row that is stored, so keys <= place says it already": [
                "right side dropped: (keys[None, :] <= place) & (keys[None, :] >= place - W) & (keys[None, :] < N) -> (keys[None, :] <= place) & (keys[None, :] >= place - W) & T",
                "comparison: keys[None, :] < N -> keys[None, :] <= N",
            ],
            "another tile of keys, as right": ["halved: 64 -> 32 (2)"],
            "exp(-inf - base) is 0 for any finite base": ["plus one: 0.0 -> 1.0 (2)"],
            "programs beyond the last row own nothing, and their loads stay within the model's": [
                "halved: 64 -> 32 (3)"
            ],
            "rounded down to a multiple of BLOCK_N next": ["plus one: 0 -> 1 (5)"],
            "its weight is 0, so a value beyond N counts nothing, as long as it is a number": [
                "plus one: 0.0 -> 1.0 (4)"
            ],
            "softmax does not see a constant added to every score": ["plus one: 1 -> 2 (2)"],
            "one tile of keys more than needed, all masked: within the bytes of tiles of 128 keys": [
                "plus one: 1 -> 2 (6)"
            ],
        }
    ),
}
