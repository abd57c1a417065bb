"""Right answers as a GPU computes them, in fp32 and in tiles: what every hidden case must accept."""

import math

import numpy as np

from grader.box.serve.frames import DTYPES
from grader.questions import Case

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
