"""Wrong answers of numpy questions, each to be told by the sentence of one mistake; topics may hold their own."""

from grader.proofs.tables import of_topics

STATES = """
def online_softmax(tiles):
    m, total, found = {start}, 0.0, []
    for t in tiles:
        new = {new}
        factor = {factor}
        total = {kept} + np.exp(t - new).sum()
        m = new
        found.append((m, factor, total))
    return {result}
"""
RIGHT_STATES = {
    "start": "-np.inf",
    "new": "max(m, t.max())",
    "factor": "np.exp(m - new)",
    "kept": "total * factor",
    "result": "found",
}

TILED = """
def tiled_attention(q, k, v, block):
    m, total, out = np.full(len(q), {start}), np.zeros(len(q)), np.zeros((len(q), v.shape[1]))
    tops, sums = [], []
    for i in range(0, {end}, block):
        s = q @ k[i : i + block].T * {scale}
        new = np.maximum(m, s.max(1))
        factor, p, m = np.exp(m - new), np.exp(s - new[:, None]), new
        total, out = {kept}
        total, out = total + p.sum(1), out + p @ v[i : i + block]
        tops.append(m)
        sums.append(total)
    tops, sums = np.array(tops), np.array(sums)
    return {result}
"""
RIGHT_TILES = {
    "start": "-np.inf",
    "end": "len(k)",
    "scale": "q.shape[1] ** -0.5",
    "kept": "total * factor, out * factor[:, None]",
    "result": "out / total[:, None], tops, sums",
}


def states(**changed) -> str:
    return STATES.format(**RIGHT_STATES | changed)


def tiled(**changed) -> str:
    return TILED.format(**RIGHT_TILES | changed)


MADE = {
    "gemm_tiling.reuse": {
        "one FLOP": "def reuse(bm, bn):\n    return bm * bn / (bm + bn)",
        "upside down": "def reuse(bm, bn):\n    return (bm + bn) / (2 * bm * bn)",
        "arithmetic mean": "def reuse(bm, bn):\n    return (bm + bn) / 2",
    },
    "gemm_tiling.tile_loads": {
        "floor": "def tile_loads(m, n, k, bm, bn):\n    return m * k * (n // bn) + k * n * (m // bm)",
        "rounded by hand": "def tile_loads(m, n, k, bm, bn):\n    return m * k * int(n / bn + 0.995) + k * n * int(m / bm + 0.995)",
        "swapped": "def tile_loads(m, n, k, bm, bn):\n    return m * k * -(-m // bm) + k * n * -(-n // bn)",
        "padded tiles": "def tile_loads(m, n, k, bm, bn):\n    return -(-m // bm) * -(-n // bn) * k * (bm + bn)",
    },
    "gemm_tiling.gemm_bytes": {
        "no store": "def gemm_bytes(m, n, k, bm, bn, e):\n    return (m * k * -(-n // bn) + k * n * -(-m // bm)) * e",
        "bytes of C alone": "def gemm_bytes(m, n, k, bm, bn, e):\n    return m * k * -(-n // bn) + k * n * -(-m // bm) + m * n * e",
        "bytes of the loads alone": "def gemm_bytes(m, n, k, bm, bn, e):\n    return (m * k * -(-n // bn) + k * n * -(-m // bm)) * e + m * n",
        "compulsory": "def gemm_bytes(m, n, k, bm, bn, e):\n    return (m * k + k * n + m * n) * e",
    },
    "gemm_tiling.tiled_matmul": {
        "one number": "def tiled_matmul(a, b, bm, bn, bk):\n    return a.astype(float) @ b.astype(float), counted(a, b, bm, bn, bk).sum()",
        "full tiles": "def tiled_matmul(a, b, bm, bn, bk):\n    return a.astype(float) @ b.astype(float), counted(a, b, bm, bn, bk) * 0 + (bm + bn) * bk",
        "never cleared": "def tiled_matmul(a, b, bm, bn, bk):\n    c, acc = np.zeros((len(a), b.shape[1])), 0\n    for i, j in np.ndindex(-(-len(a) // bm), -(-b.shape[1] // bn)):\n        rows, columns = slice(i * bm, i * bm + bm), slice(j * bn, j * bn + bn)\n        acc = acc + a[rows].astype(float) @ b[:, columns]\n        c[rows, columns] = acc\n    return c, counted(a, b, bm, bn, bk)",
        "A alone": "def tiled_matmul(a, b, bm, bn, bk):\n    return a.astype(float) @ b.astype(float), counted(a, b[:, :0], bm, bn, bk, b.shape[1])",
    },
    "flash_attention.online_softmax": {
        "last state alone": states(result="found[-1]"),
        "no rescale": states(kept="total"),
        "tile maximum": states(new="t.max()"),
        "first factor": states(factor="np.exp(m - new) if found else 1.0"),
        "maximum from zero": states(new="max(m, t.max(), 0.0)"),
        "starts at zero": states(start="0.0"),
        "maximum from a number": states(new="max(m, t.max(), -1e9)"),
        "all at once": "def online_softmax(tiles):\n    tops = np.maximum.accumulate([t.max() for t in tiles])\n    sums = np.cumsum([np.exp(t - tops[-1]).sum() for t in tiles]) * np.exp(tops[-1] - tops)\n    return list(zip(tops, np.exp(np.concatenate(([-np.inf], tops[:-1])) - tops), sums))",
        "factor upside down": states(factor="np.exp(new - m) if found else 0.0"),
    },
    "flash_attention.tiled_attention": {
        "output alone": tiled(result="out / total[:, None]"),
        "no scale": tiled(scale="1"),
        "divided by d": tiled(scale="1 / q.shape[1]"),
        "no division": tiled(result="out, tops, sums"),
        "no rescale": tiled(kept="total, out"),
        "output not rescaled": tiled(kept="total * factor, out"),
        "tail left out": tiled(end="len(k) - block + 1"),
        "maximum from zero": tiled(start="0.0"),
        "maximum from a number": tiled(start="-1e9"),
        "last state alone": tiled(result="out / total[:, None], tops[-1], sums[-1]"),
        "whole rows": tiled(result="out / total[:, None], tops * 0 + tops[-1], sums * 0 + sums[-1]"),
    },
    "flash_attention.attention_bytes": {
        "written only": "def attention_bytes(n, h, d, e):\n    return 4 * h * n * d * e + 2 * h * n * n * e, 4 * h * n * d * e",
        "one head": "def attention_bytes(n, h, d, e):\n    return 4 * n * d * e + 4 * n * n * e, 4 * n * d * e",
        "other order": "def attention_bytes(n, h, d, e):\n    return 4 * h * n * d * e, 4 * h * n * d * e + 4 * h * n * n * e",
    },
    "flash_attention.causal_tiles": {
        "no skipping": "def causal_tiles(n, bm, bn):\n    return -(-n // bm) * -(-n // bn)",
        "square tiles": "def causal_tiles(n, bm, bn):\n    return sum(range(-(-n // bm) + 1))",
        "cut off": "def causal_tiles(n, bm, bn):\n    return sum(min(i + bm, n) // bn for i in range(0, n, bm))",
        "first row": "def causal_tiles(n, bm, bn):\n    return sum(-(-(i + 1) // bn) for i in range(0, n, bm))",
        "rows beyond the end": "def causal_tiles(n, bm, bn):\n    return sum(-(-(i + bm) // bn) for i in range(0, n, bm))",
        "blocks exchanged": "def causal_tiles(n, bm, bn):\n    return sum(-(-min(j + bn, n) // bm) for j in range(0, n, bn))",
    },
    "sampling_fusion.penalize": {
        "always divides": "def penalize(x, out, r, f, p):\n    n = np.bincount(np.array(out, int), minlength=len(x))\n    return np.where(n > 0, x / r, x) - f * n - p * (n > 0)",
        "presence by count": "def penalize(x, out, r, f, p):\n    n = np.bincount(np.array(out, int), minlength=len(x))\n    return np.where(n > 0, np.where(x > 0, x / r, x * r), x) - (f + p) * n",
        "subtracted first": "def penalize(x, out, r, f, p):\n    n = np.bincount(np.array(out, int), minlength=len(x))\n    x = x - f * n - p * (n > 0)\n    return np.where(n > 0, np.where(x > 0, x / r, x * r), x)",
        "frequency once": "def penalize(x, out, r, f, p):\n    n = np.bincount(np.array(out, int), minlength=len(x)) > 0\n    return np.where(n, np.where(x > 0, x / r, x * r), x) - (f + p) * n",
        "repetition each time": "def penalize(x, out, r, f, p):\n    n = np.bincount(np.array(out, int), minlength=len(x))\n    return np.where(x > 0, x / r**n, x * r**n) - f * n - p * (n > 0)",
        "presence for all": "def penalize(x, out, r, f, p):\n    n = np.bincount(np.array(out, int), minlength=len(x))\n    return np.where(n > 0, np.where(x > 0, x / r, x * r), x) - f * n - p",
    },
    "sampling_fusion.survivors": {
        "ids": "def survivors(x, t, k, p, m):\n    return np.flatnonzero(chosen(x, t, k, p, m))",
        "top-p never off": "def survivors(x, t, k, p, m):\n    return chosen(x, t, k, p, m, never_off=True)",
        "crossing token dropped": "def survivors(x, t, k, p, m):\n    return chosen(x, t, k, p, m, crossing=True)",
        "top-p of everything": 'def survivors(x, t, k, p, m):\n    return chosen(x, t, k, p, m, mass="all")',
        "no temperature": "def survivors(x, t, k, p, m):\n    return chosen(x, t, k, p, m, warm=False)",
        "no top-k": "def survivors(x, t, k, p, m):\n    return chosen(x, t, 0, p, m)",
        "no top-p": "def survivors(x, t, k, p, m):\n    return chosen(x, t, k, 1.0, m)",
        "no min-p": "def survivors(x, t, k, p, m):\n    return chosen(x, t, k, p, 0.0)",
        "min-p first": "def survivors(x, t, k, p, m):\n    return chosen(x, t, k, p, m, min_first=True)",
        "min-p of the row": "def survivors(x, t, k, p, m):\n    return chosen(x, t, k, p, m, row=True)",
        "ties all stay": "def survivors(x, t, k, p, m):\n    return chosen(x, t, k, p, m, ties=True)",
        "ties together": "def survivors(x, t, k, p, m):\n    return chosen(x, t, k, p, m, together=True)",
        "highest id first": "def survivors(x, t, k, p, m):\n    return chosen(x, t, k, p, m, order=lambda i, v: (-v, -i))",
        "mass counted twice": 'def survivors(x, t, k, p, m):\n    return chosen(x, t, k, p, m, mass="twice")',
        "off read as one": "def survivors(x, t, k, p, m):\n    return chosen(x, t, k, p, m, off=1)",
        "at most p": "def survivors(x, t, k, p, m):\n    return chosen(x, t, k, p, m, most=True)",
        "above min-p": "def survivors(x, t, k, p, m):\n    return chosen(x, t, k, p, m, above=True)",
        "nothing stays": "def survivors(x, t, k, p, m):\n    return chosen(x, t, k, p, m, first=False)",
        "banned tokens stay": "def survivors(x, t, k, p, m):\n    return chosen(x, t, k, p, m, banned=True)",
        "unstable order": "def survivors(x, t, k, p, m):\n    order = np.argsort(-x)\n    flags = np.zeros(len(x), bool)\n    flags[order] = chosen(np.sort(x)[::-1], t, k, p, m)\n    return flags",
    },
    "sampling_fusion.gumbel_pick": {
        "the sum itself": "def gumbel_pick(x, t, u):\n    return float(np.max(x / t - np.log(-np.log(u))))",
        "noise scaled": "def gumbel_pick(x, t, u):\n    return int(np.argmax((x - np.log(-np.log(u))) / t))",
        "sign": "def gumbel_pick(x, t, u):\n    return int(np.argmax(x / t + np.log(-np.log(u))))",
        "a race of powers": "def gumbel_pick(x, t, u):\n    return int(np.argmin(-np.log(u) / np.exp(x / t)))",
        "one logarithm": "def gumbel_pick(x, t, u):\n    return int(np.argmax(x / t - np.log(u)))",
        "base two": "def gumbel_pick(x, t, u):\n    return int(np.argmax(x / t - np.log2(-np.log2(u))))",
        "no noise": "def gumbel_pick(x, t, u):\n    return int(np.argmax(x))",
        "another noise": "def gumbel_pick(x, t, u):\n    return int(np.argmax(x / t - np.log(-np.log(1 - u))))",
    },
    "sampling_fusion.inverse_pick": {
        "sums of 32 bits": "def inverse_pick(w, u):\n    w = np.asarray(w, np.float32)\n    before = np.cumsum(w) - w\n    return int(np.flatnonzero((w > 0) & (before <= np.float32(u) * np.sum(w)))[-1])",
        "first instead of last": "def inverse_pick(w, u):\n    return int(np.flatnonzero((w > 0) & (np.cumsum(w) - w <= u * np.sum(w)))[0])",
        "weight 0": "def inverse_pick(w, u):\n    ends = np.cumsum(w)\n    return int(np.searchsorted(ends, u * ends[-1]))",
        "weight 0 at the end": "def inverse_pick(w, u):\n    return int(np.flatnonzero(np.cumsum(w) - w <= u * np.sum(w))[-1])",
        "not the whole weight": "def inverse_pick(w, u):\n    return int(np.flatnonzero((w > 0) & (np.cumsum(w) - w <= u))[-1])",
        "before the border": "def inverse_pick(w, u):\n    return int(max(np.flatnonzero(w)[0], *np.flatnonzero((w > 0) & (np.cumsum(w) - w < u * np.sum(w))), -1))",
        "mass with it": "def inverse_pick(w, u):\n    return int(np.flatnonzero((w > 0) & (np.cumsum(w) <= u * np.sum(w)))[-1])",
    },
    "sampling_fusion.kept_share": {
        "after the filter": "def kept_share(x, t, k, p, m):\n    return 1.0",
        "of what top-k kept": "def kept_share(x, t, k, p, m):\n    w = np.exp((x - x.max()) / t)\n    return w[chosen(x, t, k, p, m)].sum() / w[chosen(x, t, k, 1.0, 0.0)].sum()",
        "min-p of the row": "def kept_share(x, t, k, p, m):\n    w = np.exp((x - x.max()) / t)\n    return w[chosen(x, t, k, p, m, row=True)].sum() / w.sum()",
        "ties all stay": "def kept_share(x, t, k, p, m):\n    w = np.exp((x - x.max()) / t)\n    return w[chosen(x, t, k, p, m, ties=True)].sum() / w.sum()",
        "ties together": "def kept_share(x, t, k, p, m):\n    w = np.exp((x - x.max()) / t)\n    return w[chosen(x, t, k, p, m, together=True)].sum() / w.sum()",
        "at most p": "def kept_share(x, t, k, p, m):\n    w = np.exp((x - x.max()) / t)\n    return w[chosen(x, t, k, p, m, most=True)].sum() / w.sum()",
        "above min-p": "def kept_share(x, t, k, p, m):\n    w = np.exp((x - x.max()) / t)\n    return w[chosen(x, t, k, p, m, above=True)].sum() / w.sum()",
        "nothing stays": "def kept_share(x, t, k, p, m):\n    w = np.exp((x - x.max()) / t)\n    return w[chosen(x, t, k, p, m, first=False)].sum() / w.sum()",
        "no temperature": "def kept_share(x, t, k, p, m):\n    w = np.exp(x - x.max())\n    return w[chosen(x, t, k, p, m, warm=False)].sum() / w.sum()",
        "a count": "def kept_share(x, t, k, p, m):\n    return chosen(x, t, k, p, m).mean()",
        "crossing token dropped": "def kept_share(x, t, k, p, m):\n    w = np.exp((x - x.max()) / t)\n    return w[chosen(x, t, k, p, m, crossing=True)].sum() / w.sum()",
        "top-p of everything": 'def kept_share(x, t, k, p, m):\n    w = np.exp((x - x.max()) / t)\n    return w[chosen(x, t, k, p, m, mass="all")].sum() / w.sum()',
        "no top-k": "def kept_share(x, t, k, p, m):\n    w = np.exp((x - x.max()) / t)\n    return w[chosen(x, t, 0, p, m)].sum() / w.sum()",
        "no top-p": "def kept_share(x, t, k, p, m):\n    w = np.exp((x - x.max()) / t)\n    return w[chosen(x, t, k, 1.0, m)].sum() / w.sum()",
        "no min-p": "def kept_share(x, t, k, p, m):\n    w = np.exp((x - x.max()) / t)\n    return w[chosen(x, t, k, p, 0.0)].sum() / w.sum()",
        "min-p first": "def kept_share(x, t, k, p, m):\n    w = np.exp((x - x.max()) / t)\n    return w[chosen(x, t, k, p, m, min_first=True)].sum() / w.sum()",
        "off read as one": "def kept_share(x, t, k, p, m):\n    w = np.exp((x - x.max()) / t)\n    return w[chosen(x, t, k, p, m, off=1)].sum() / w.sum()",
    },
    **of_topics("concepts_wrong", "MADE"),
}

COUNTED = """
def counted(a, b, bm, bn, bk, columns=None):
    n = b.shape[1] if columns is None else columns
    loads = np.zeros((-(-len(a) // bm), -(-n // bn), -(-len(b) // bk)), int)
    for i, j, s in np.ndindex(loads.shape):
        steps = slice(s * bk, s * bk + bk)
        loads[i, j, s] = a[i * bm : i * bm + bm, steps].size + b[steps, j * bn : j * bn + bn].size
    return loads


"""

CHOSEN = """
def chosen(x, t, k, p, m, order=lambda i, v: (-v, i), warm=True, ties=False, together=False, off=0, mass="kept",
           crossing=False, most=False, first=True, min_first=False, row=False, above=False, banned=False,
           never_off=False):
    x = np.asarray(x, float)
    ids = sorted((i for i in range(len(x)) if banned or x[i] > -np.inf), key=lambda i: order(i, x[i]))
    best = x.max()
    w = np.exp((x[ids] - best) / (t if warm else 1.0))
    k = (k or off) or len(ids)
    keep = np.arange(len(ids)) < k
    if ties and k <= len(ids):
        keep = x[ids] >= x[ids[k - 1]]
    least = (w > m) if above else (w >= m * (w.sum() if row else 1.0))
    if min_first:
        keep = keep & least
    before = np.cumsum(w) - w
    if together:
        before = np.array([before[np.searchsorted(-x[ids], -x[i])] for i in ids])
    if p < 1 or never_off:
        limit = p * (w.sum() if mass == "all" else w[keep].sum()) * (2 if mass == "twice" and k > len(ids) else 1)
        inside = before + w <= limit if crossing else before <= limit if most else before < limit
        keep = keep & (inside | ((np.arange(len(ids)) == 0) & first))
    keep = keep & least
    flags = np.zeros(len(x), bool)
    flags[np.array(ids)[keep]] = True
    return flags


"""


def source(question: str, name: str) -> str:
    made = MADE[question][name]
    helpers = {"chosen(": CHOSEN, "counted(": COUNTED}
    return "".join(text for word, text in helpers.items() if word in made) + made + "\n"
