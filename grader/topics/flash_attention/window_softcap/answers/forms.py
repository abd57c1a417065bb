"""List right answers to *window softcap* in other forms."""



FORMS = {
        "tiles of keys of 32": ((), [('"BLOCK_N": 64', '"BLOCK_N": 32')]),
        "tiles of keys of 256": ((), [('"BLOCK_N": 64', '"BLOCK_N": 256')]),
        "tiles of rows of 32": ((), [('"BLOCK_M": 64', '"BLOCK_M": 32'), ("triton.cdiv(p.M, 64)", "triton.cdiv(p.M, 32)")]),
        "tanh from the other end": ((), [("(1 - 2 / (tl.exp(2 * x) + 1))", "tl.where(x > 0, 1 - 2 / (tl.exp(2 * tl.abs(x)) + 1), 2 / (tl.exp(2 * tl.abs(x)) + 1) - 1)")]),
        "tanh by a sigmoid": ((), [("(1 - 2 / (tl.exp(2 * x) + 1))", "(2 * tl.sigmoid(2 * x) - 1)")]),
        "a while loop": ((), [("    for start in range(begin, end, BLOCK_N):", "    start = begin\n    while start < end:"), ("        m = m_new\n", "        m = m_new\n        start += BLOCK_N\n")]),
        "a very low number for masked scores": ((), [('s = tl.where(seen, s, float("-inf"))', "s = tl.where(seen, s, -1.0e30)"), ("p = tl.exp(s - base[:, None])", "p = tl.where(seen, tl.exp(s - base[:, None]), 0.0)")]),
        "keys loaded as they lie": ((), [("k_ptrs + keys[None, :] * stride_kn, mask=keys[None, :] < N", "k_ptrs + keys[:, None] * stride_kn, mask=keys[:, None] < N"), ("offs_d[:, None] * stride_kd", "offs_d[None, :] * stride_kd"), ("tl.dot(q, k)", "tl.dot(q, tl.trans(k))")]),
    }
