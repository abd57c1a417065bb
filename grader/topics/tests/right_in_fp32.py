"""Right answers as a GPU computes them, in fp32 and in tiles: what every hidden case must accept."""

import math

import numpy as np

from grader.box.serve.frames import DTYPES
from grader.questions import Case
from grader.topics.sampling_fusion.shared_rows import filters, uniform

F = np.float32
erf = np.vectorize(math.erf, otypes=[np.float64])


def stored(values: np.ndarray, case: Case, name: str) -> np.ndarray:
    return values.astype(F).astype(DTYPES[case.dtypes.get(name, case.dtype)]).astype(np.float64)


def gemm(inputs: dict, case: Case, block: int = 32) -> dict:
    total = np.zeros((case.sizes["M"], case.sizes["N"]), F)
    for k in range(0, case.sizes["K"], block):
        total += inputs["a"][:, k : k + block].astype(F) @ inputs["b"][k : k + block].astype(F)
    return {"c": stored(total, case, "c")}


def block_scaled(inputs: dict, case: Case, block: int = 128, lost_bits: int = 0) -> dict:
    """With `lost_bits`, each block's product as a Hopper tensor core sums fp8: 32 products at a time, 13 bits kept."""
    total = np.zeros((case.sizes["M"], case.sizes["N"]), F)
    columns = np.arange(case.sizes["N"]) // 128
    for i, k in enumerate(range(0, case.sizes["K"], block)):
        a, b = inputs["a"][:, k : k + block].astype(F), inputs["b"][k : k + block].astype(F)
        part = _hopper(a, b) if lost_bits else a @ b
        total += part * inputs["sa"][:, i, None] * inputs["sb"][i, columns][None, :]
    return {"c": stored(total, case, "c")}


def _hopper(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    total = np.zeros((len(a), b.shape[1]), F)
    for k in range(0, a.shape[1], 32):
        products = a[:, k : k + 32, None] * b[None, k : k + 32]
        largest = np.maximum(np.abs(products).max(1), np.abs(total))
        unit = 2.0 ** (np.floor(np.log2(np.maximum(largest, 1e-30))) - 13)
        kept = np.trunc(products / unit[:, None]).sum(1) + np.trunc(total / unit)
        total = (kept * unit).astype(F)
    return total


def norm(inputs: dict, case: Case) -> dict:
    x = inputs["x"].astype(F)
    g = (F(0.5) * x * (1 + erf(x * F(0.70710678)).astype(F))).astype(F)
    n = F(case.sizes["N"])
    d = g - (g.sum(-1, keepdims=True, dtype=F) / n)
    rstd = 1 / np.sqrt((d * d).sum(-1, keepdims=True, dtype=F) / n + F(case.scalars["eps"]))
    return {"y": stored(d * rstd * inputs["w"] + inputs["b"], case, "y")}


def residual_norm(inputs: dict, case: Case) -> dict:
    kept = stored(inputs["x"].astype(F) + inputs["r"].astype(F), case, "r").astype(F)
    mean = (kept * kept).sum(-1, keepdims=True, dtype=F) / F(case.sizes["N"])
    y = kept * (1 / np.sqrt(mean + F(case.scalars["eps"]))).astype(F) * inputs["w"].astype(F)
    return {"r": kept.astype(np.float64), "y": stored(y, case, "y")}


def rotary_cache(inputs: dict, case: Case) -> dict:
    h, g, d, s = (case.sizes[name] for name in "HGDS")
    heads = inputs["x"].astype(F).reshape(len(inputs["x"]), -1, d)
    at = inputs["lens"] - 1
    cos, sin = np.split(inputs["turns"][at][:, None], 2, axis=-1)

    def turned(x, w):
        x = x / np.sqrt((x * x).sum(-1, keepdims=True, dtype=F) / F(d) + F(case.scalars["eps"])) * w.astype(F)
        a, b = np.split(x, 2, axis=-1)
        return np.concatenate([a * cos - b * sin, b * cos + a * sin], axis=-1)

    where = inputs["table"][np.arange(len(at)), at // s], slice(None), at % s
    found = {name: inputs[name].astype(np.float64) for name in "kv"}
    found["k"][where] = stored(turned(heads[:, h : h + g], inputs["wk"]), case, "k")
    found["v"][where] = stored(heads[:, h + g :], case, "v")
    return found | {"q": stored(turned(heads[:, :h], inputs["wq"]), case, "q")}


def _scores(q, k, case: Case) -> np.ndarray:
    s = (q.astype(F) @ k.astype(F).swapaxes(-1, -2)) * F(case.scalars["scale"])
    cap = case.scalars.get("softcap")
    return F(cap) * np.tanh(s / F(cap)) if cap else s


def _each_head(inputs: dict, heads: int) -> list[np.ndarray]:
    return [np.repeat(inputs[x], heads // inputs[x].shape[1], axis=1) for x in "kv"]


def attention(inputs: dict, case: Case, block: int = 64) -> dict:
    """Online softmax over tiles of keys; weights rounded to the inputs' dtype before they meet the values."""
    one_query, q = "M" not in case.sizes, inputs["q"]
    q = q[:, :, None] if one_query else q
    k, v = _each_head(inputs, q.shape[1])
    m, n = q.shape[2], k.shape[2]
    place, dtype = np.arange(m)[:, None] + (n - m), DTYPES[case.dtype]
    top, total = np.full((*q.shape[:3], 1), -np.inf, F), np.zeros((*q.shape[:3], 1), F)
    acc = np.zeros(q.shape, F)
    for start in range(0, n, block):
        key = np.arange(start, min(n, start + block))[None, :]
        seen = (key <= place) & (key >= place - case.sizes.get("W", n))
        s = np.where(seen, _scores(q, k[:, :, start : start + block], case), F(-np.inf))
        new = np.maximum(top, s.max(-1, keepdims=True))
        base = np.where(np.isneginf(new), F(0), new)
        p, kept = np.exp(s - base), np.exp(top - base)
        total = total * kept + p.sum(-1, keepdims=True, dtype=F)
        acc = acc * kept + p.astype(dtype).astype(F) @ v[:, :, start : start + block].astype(F)
        top = new
    o = acc / total
    return {"o": stored(o[:, :, 0] if one_query else o, case, "o")}


def attention_of_scaled_queries(inputs: dict, case: Case) -> dict:
    """Queries times the scale are rounded before the product, as some good kernels do."""
    q = (inputs["q"].astype(F) * F(case.scalars["scale"])).astype(DTYPES[case.dtype])
    return attention(inputs | {"q": q}, Case(case.sizes, case.dtype, scalars={**case.scalars, "scale": 1.0}))


def gradients(inputs: dict, case: Case) -> dict:
    q, k, v, do, o = (inputs[x].astype(F) for x in ("q", "k", "v", "do", "o"))
    m, n, scale, dtype = q.shape[2], k.shape[2], F(case.scalars["scale"]), DTYPES[case.dtype]
    seen = np.arange(n)[None, :] <= np.arange(m)[:, None] + (n - m)
    s = (q @ k.swapaxes(-1, -2)) * scale
    p = np.where(seen, np.exp(s - inputs["lse"].astype(F)[..., None]), F(0))
    delta = (o * do).sum(-1, keepdims=True, dtype=F)
    ds = (p * (do @ v.swapaxes(-1, -2) - delta)).astype(dtype).astype(F)
    found = {
        "dq": (ds @ k) * scale,
        "dk": (ds.swapaxes(-1, -2) @ q) * scale,
        "dv": p.astype(dtype).astype(F).swapaxes(-1, -2) @ do,
    }
    return {name: stored(value, case, name) for name, value in found.items()}


def gated(inputs: dict, case: Case, block: int = 64) -> dict:
    """Gate and up in steps along H; rows without a pair stay."""
    pairs, h = inputs["sorted_token_ids"], inputs["h"].astype(np.float64)
    x, w = inputs["x"].astype(F), inputs["w"].astype(F)
    for row in np.flatnonzero(pairs >= 0):
        both, token = np.zeros(2 * case.sizes["N"], F), pairs[row] // case.sizes["K"]
        mine = w[inputs["expert_ids"][row // case.sizes["TILE"]]]
        for k in range(0, case.sizes["H"], block):
            both += mine[:, k : k + block] @ x[token, k : k + block]
        gate, up = np.split(both, 2)
        h[row] = stored(gate / (F(1) + np.exp(-gate)) * up, case, "h")
    return {"h": h}


def combined(inputs: dict, case: Case) -> dict:
    """Slot by slot."""
    total = np.zeros((case.sizes["T"], case.sizes["H"]), F)
    for slot in range(case.sizes["K"]):
        rows = inputs["rows"][inputs["inv_permuted_idx"][:, slot]].astype(F)
        total += inputs["topk_weights"][:, slot, None] * rows
    return {"out": stored(total, case, "out")}


def draws(inputs: dict, case: Case) -> dict:
    """One row after another, every number in fp32."""
    return {"token": np.array([_draw(inputs, i) for i in range(case.sizes["B"])], np.float64)}


def _draw(inputs: dict, i: int) -> int:
    x, t = inputs["logits"][i].astype(F), F(inputs["temperature"][i])
    if "allowed" in inputs:
        x = _penalised(inputs, i, x)
    if x.max() == -np.inf:
        return -1
    if t == 0:
        return int(np.argmax(x))
    u = uniform(int(inputs["seed"][i]), np.arange(x.size)).astype(F)
    with np.errstate(divide="ignore"):
        score = x / t - np.log(-np.log(u))
    if "top_k" in inputs:
        score = np.where(_stays(inputs, i, x, t), score, F(-np.inf))
    return int(np.argmax(score))


def _penalised(inputs: dict, i: int, x: np.ndarray) -> np.ndarray:
    r, f, p = (F(inputs[name][i]) for name in ("repetition", "frequency", "presence"))
    bits = np.unpackbits(inputs["allowed"][i : i + 1].astype("<i4").view(np.uint8), bitorder="little")[
        : x.size
    ]
    x = np.where(bits != 0, x, F(-np.inf))
    history = inputs["history"][i]
    count = np.bincount(history[history >= 0], minlength=x.size).astype(F)
    return np.where(count > 0, np.where(x > 0, x / r, x * r) - f * count - p, x)


def _stays(inputs: dict, i: int, x: np.ndarray, t: F) -> np.ndarray:
    k, p, least = (F(number) for number in filters(inputs, i))
    order = np.argsort(-x, kind="stable")
    weight = np.exp((x[order] - x.max()) / t)
    keep = np.arange(x.size) < (k or x.size)
    kept = np.where(keep, weight, F(0))
    before = np.cumsum(kept, dtype=F) - kept
    keep &= ((before < p * kept.sum(dtype=F)) | (p >= 1)) & (weight >= least) & np.isfinite(x[order])
    flags = np.zeros(x.size, bool)
    flags[order[keep]] = True
    return flags
