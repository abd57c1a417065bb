"""Wrong answers of numpy questions, each to be told by the sentence of one mistake."""

MADE = {
    "gemm_tiling.reuse": {
        "one FLOP": "def reuse(bm, bn):\n    return bm * bn / (bm + bn)",
        "arithmetic mean": "def reuse(bm, bn):\n    return (bm + bn) / 2",
    },
    "gemm_tiling.tile_loads": {
        "floor": "def tile_loads(m, n, k, bm, bn):\n    return m * k * (n // bn) + k * n * (m // bm)",
        "swapped": "def tile_loads(m, n, k, bm, bn):\n    return m * k * -(-m // bm) + k * n * -(-n // bn)",
        "padded tiles": "def tile_loads(m, n, k, bm, bn):\n    return -(-m // bm) * -(-n // bn) * k * (bm + bn)",
    },
    "gemm_tiling.gemm_bytes": {
        "no store": "def gemm_bytes(m, n, k, bm, bn, e):\n    return (m * k * -(-n // bn) + k * n * -(-m // bm)) * e",
        "compulsory": "def gemm_bytes(m, n, k, bm, bn, e):\n    return (m * k + k * n + m * n) * e",
    },
    "gemm_tiling.tiled_matmul": {
        "no count": "def tiled_matmul(a, b, bm, bn, bk):\n    return a.astype(float) @ b.astype(float), a.size + b.size",
    },
    "sampling_fusion.penalize": {
        "always divides": "def penalize(x, out, r, f, p):\n    n = np.bincount(np.array(out, int), minlength=len(x))\n    return np.where(n > 0, x / r, x) - f * n - p * (n > 0)",
        "presence by count": "def penalize(x, out, r, f, p):\n    n = np.bincount(np.array(out, int), minlength=len(x))\n    return np.where(n > 0, np.where(x > 0, x / r, x * r), x) - (f + p) * n",
        "subtracted first": "def penalize(x, out, r, f, p):\n    n = np.bincount(np.array(out, int), minlength=len(x))\n    x = x - f * n - p * (n > 0)\n    return np.where(n > 0, np.where(x > 0, x / r, x * r), x)",
    },
    "sampling_fusion.survivors": {
        "crossing token dropped": "def survivors(x, t, k, p, m):\n    return chosen(x, t, k, p, m, lambda before, w: before + w)",
        "no temperature": "def survivors(x, t, k, p, m):\n    return chosen(x, 1.0, k, p, m, lambda before, w: before)",
        "top-p of everything": "def survivors(x, t, k, p, m):\n    return chosen(x, t, k, 1.0, m, lambda before, w: before) & chosen(x, t, 0, p, m, lambda before, w: before)",
    },
    "sampling_fusion.gumbel_pick": {
        "noise scaled": "def gumbel_pick(x, t, u):\n    return int(np.argmax((x - np.log(-np.log(u))) / t))",
        "sign": "def gumbel_pick(x, t, u):\n    return int(np.argmax(x / t + np.log(-np.log(u))))",
    },
}  # fmt: skip

CHOSEN = """
def chosen(x, t, k, p, m, mass):
    order = sorted(range(len(x)), key=lambda i: (-x[i], i))
    w = np.exp((np.asarray(x, float)[order] - max(x)) / t)
    keep = (w > 0) & (np.arange(len(x)) < (k or len(x)))
    before = np.cumsum(np.where(keep, w, 0)) - np.where(keep, w, 0)
    if p < 1:
        edge = mass(before, w)
        first = np.arange(len(x)) == 0
        keep = keep & ((edge < p * w[keep].sum()) | first)
    keep = keep & (w >= m)
    flags = np.zeros(len(x), bool)
    flags[np.array(order)[keep]] = True
    return flags


"""


def source(question: str, name: str) -> str:
    return (CHOSEN if "chosen(" in MADE[question][name] else "") + MADE[question][name] + "\n"
