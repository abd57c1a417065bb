"""List right answers to *repack* in other forms."""

FORMS = {
    "lane by lane": """def repack(qweight, g_idx):
    k, n = 8 * qweight.shape[0], qweight.shape[1]
    codes = np.empty((n, k), np.uint32)
    for j in range(8):
        codes[:, j::8] = (qweight.T >> np.uint32(4 * j)) & np.uint32(15)
    order = sorted(range(k), key=lambda column: g_idx[column])
    codes = codes[:, order]
    words = np.zeros((n // 16, k // 16, 32), np.uint32)
    for lane in range(32):
        r, c = lane // 4, 2 * (lane % 4)
        places = [(0, 0), (0, 8), (8, 0), (8, 8), (0, 1), (0, 9), (8, 1), (8, 9)]
        for nibble, (down, right) in enumerate(places):
            words[:, :, lane] |= codes[r + down :: 16, c + right :: 16] << np.uint32(4 * nibble)
    return np.array(order), words""",
    "lexsort and python numbers": """def repack(qweight, g_idx):
    file = qweight.astype(np.int64)
    codes = np.stack([file // 16**j % 16 for j in range(8)], 1).reshape(-1, qweight.shape[1])
    order = np.lexsort((np.arange(len(g_idx)), g_idx))
    t = codes[order].reshape(len(g_idx) // 16, 2, 4, 2, -1, 2, 8)  # K: half, pair, parity; N: half, row
    t = t.transpose(4, 0, 6, 2, 3, 5, 1).reshape(t.shape[4], t.shape[0], 32, 8)
    return order, (t * 16 ** np.arange(8)).sum(-1)""",
}
