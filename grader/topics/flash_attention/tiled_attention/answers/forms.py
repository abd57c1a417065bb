"""List right answers to *tiled attention* in other forms."""



FORMS = {
        "row arrays in lists": "def tiled_attention(q, k, v, block):\n    m, total, out = np.full(len(q), -np.inf), 0.0, 0.0\n    tops, sums = [], []\n    for i in range(0, len(k), block):\n        s = q @ k[i : i + block].T / np.sqrt(q.shape[1])\n        new = np.maximum(m, s.max(1))\n        f, p, m = np.exp(m - new), np.exp(s - new[:, None]), new\n        total, out = total * f + p.sum(1), out * f[:, None] + p @ v[i : i + block]\n        tops.append(m)\n        sums.append(total)\n    return out / total[:, None], tops, sums",
    }
