"""List right answers to *tiled matmul* in other forms."""



FORMS = {
        "nested lists": "def tiled_matmul(a, b, bm, bn, bk):\n    rows, columns, steps = ([min(s, size - i) for i in range(0, size, s)] for size, s in ((len(a), bm), (b.shape[1], bn), (len(b), bk)))\n    c = [[sum(a[i, s : s + bk] @ b[s : s + bk, j] for s in range(0, len(b), bk)) for j in range(b.shape[1])] for i in range(len(a))]\n    return c, [[[(r + n) * k for k in steps] for n in columns] for r in rows]",
    }
