"""Right answers to the numpy questions in forms that nobody expected: other containers, other number types, other ways.

FORMS: question -> name -> source of the cell; each gets full points. Topics may hold their own, as NUMPY_FORMS.
"""

from grader.proofs.tables import of_topics

SURVIVORS = """
def survivors(logits, temperature, top_k, top_p, min_p):
    order = sorted(range(len(logits)), key=lambda i: (-logits[i], i))
    weight = [math.exp((logits[i] - logits[order[0]]) / temperature) for i in order]
    first = order[: top_k or len(order)]
    limit, before, stays = top_p * math.fsum(weight[: len(first)]), 0.0, set()
    for rank, token in enumerate(first):
        near = before < limit or top_p >= 1 or rank == 0
        if near and weight[rank] >= min_p and logits[token] > -math.inf:
            stays.add(token)
        before += weight[rank]
    return {result}
"""

STATES = """
def online_softmax(tiles):
    m, total, states = float("-inf"), 0.0, []
    for tile in tiles:
        new = max(m, max(tile))
        factor = math.exp(m - new)
        total = total * factor + sum(math.exp(s - new) for s in tile)
        m = new
        states.append({state})
    return {states}
"""

FORMS = {
    "sampling_fusion.penalize": {
        "a Counter": "from collections import Counter\n\n\ndef penalize(x, output, r, f, p):\n    y = list(x)\n    for token, times in Counter(output).items():\n        y[token] = (y[token] / r if y[token] > 0 else y[token] * r) - f * times - p\n    return np.array(y)",
        "a list": "def penalize(x, output, r, f, p):\n    return [float((v / r if v > 0 else v * r) - f * output.count(i) - p) if i in output else float(v) for i, v in enumerate(x)]",
        "a tuple": "def penalize(x, output, r, f, p):\n    return tuple((v / r if v > 0 else v * r) - f * output.count(i) - p if i in output else v for i, v in enumerate(x))",
    },
    "sampling_fusion.survivors": {
        "a list of booleans": "import math\n"
        + SURVIVORS.format(result="[i in stays for i in range(len(logits))]"),
        "a list of numpy booleans": "import math\n"
        + SURVIVORS.format(result="[np.bool_(i in stays) for i in range(len(logits))]"),
        "an array": "import math\n"
        + SURVIVORS.format(result="np.isin(np.arange(len(logits)), sorted(stays))"),
    },
    "sampling_fusion.gumbel_pick": {
        "a numpy integer": "def gumbel_pick(x, t, u):\n    return np.argmax(x / t - np.log(-np.log(u)))",
        "by a loop": "import math\n\n\ndef gumbel_pick(x, t, u):\n    return max(range(len(x)), key=lambda i: x[i] / t - math.log(-math.log(u[i])))",
    },
    "sampling_fusion.inverse_pick": {
        "by a loop": "def inverse_pick(w, u):\n    before, last, aim = 0.0, 0, u * sum(w)\n    for i, one in enumerate(w):\n        if one > 0 and before <= aim:\n            last = i\n        before += one\n    return last",
    },
    "flash_attention.online_softmax": {
        "tuples in a tuple": "import math\n"
        + STATES.format(state="(m, factor, total)", states="tuple(states)"),
        "lists in a list": "import math\n" + STATES.format(state="[m, factor, total]", states="states"),
        "an array": "import math\n" + STATES.format(state="(m, factor, total)", states="np.array(states)"),
        "row arrays in a list": "import math\n"
        + STATES.format(state="np.array([m, factor, total])", states="states"),
    },
    "flash_attention.tiled_attention": {
        "row arrays in lists": "def tiled_attention(q, k, v, block):\n    m, total, out = np.full(len(q), -np.inf), 0.0, 0.0\n    tops, sums = [], []\n    for i in range(0, len(k), block):\n        s = q @ k[i : i + block].T / np.sqrt(q.shape[1])\n        new = np.maximum(m, s.max(1))\n        f, p, m = np.exp(m - new), np.exp(s - new[:, None]), new\n        total, out = total * f + p.sum(1), out * f[:, None] + p @ v[i : i + block]\n        tops.append(m)\n        sums.append(total)\n    return out / total[:, None], tops, sums",
    },
    "gemm_tiling.tiled_matmul": {
        "nested lists": "def tiled_matmul(a, b, bm, bn, bk):\n    rows, columns, steps = ([min(s, size - i) for i in range(0, size, s)] for size, s in ((len(a), bm), (b.shape[1], bn), (len(b), bk)))\n    c = [[sum(a[i, s : s + bk] @ b[s : s + bk, j] for s in range(0, len(b), bk)) for j in range(b.shape[1])] for i in range(len(a))]\n    return c, [[[(r + n) * k for k in steps] for n in columns] for r in rows]",
    },
    "flash_attention.attention_bytes": {
        "an array": "def attention_bytes(n, h, d, e):\n    tiled = 4 * h * n * d * e\n    return np.array([tiled + 4 * h * n * n * e, tiled])",
    },
    **of_topics("honest", "NUMPY_FORMS"),
}
