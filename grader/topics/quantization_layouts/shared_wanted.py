"""Share the references of questions of quantization layouts."""

from itertools import pairwise

import numpy as np

from grader.questions import Case
from grader.questions.draws import ROUNDING, SMALLEST, sum_off, where_finite
from grader.topics.quantization_layouts.shared import EXACT
from kernels.quantization_layouts import reference

SHIFTS = 4 * np.arange(8, dtype=np.uint32)
BLOCK = 32  # columns of a codebook's scale, and of a word of a bit plane


def codes_of(inputs: dict) -> np.ndarray:
    """Eight codes of each word along the last axis, the first in its lowest four bits."""
    each = inputs["w"].view(np.uint32)[..., None] >> SHIFTS & 15
    return each.astype(np.uint8).reshape(*inputs["w"].shape[:-1], -1)


def codes_of_planes(w: np.ndarray) -> np.ndarray:
    """Return uint8 (.., N, K) from (.., bits, N, words): bit b of 32 neighbours in a word of plane b, the first in
    its lowest bit."""
    *many, bits, n, words = w.shape
    last = np.moveaxis(w.view(np.uint32), -3, -1).reshape(-1, words, bits)
    return reference.from_bit_planes(last).reshape(*many, n, BLOCK * words)


def int4(inputs: dict, case: Case) -> reference.Int4:
    return reference.Int4(codes_of(inputs), inputs["s"], inputs.get("z"), case.sizes["G"])


def kbit(inputs: dict) -> reference.KBit:
    """Codes in bit planes, or bare as `pack` is given them."""
    if "codes" in inputs:
        codes, scales, levels = (inputs[name] for name in ("codes", "scales", "c"))
    else:
        codes, scales, levels = codes_of_planes(inputs["w"]), inputs["s"], inputs["c"]
    return reference.KBit(codes, scales, levels, BLOCK, len(levels).bit_length() - 1)


def weights(inputs: dict, case: Case) -> np.ndarray:
    """Return the weights that the codes represent, (N, K), or (E, N, K) for experts."""
    return reference.values(int4(inputs, case) if "G" in case.sizes else kbit(inputs))


def product(inputs: dict, w: np.ndarray, some: slice = slice(None)) -> np.ndarray:
    """Return x W.T over some of the columns. If r assigns rows to experts, each expert's rows meet its own W."""
    x, w = inputs["x"][..., some], w[..., some]
    if "r" not in inputs:
        return reference.linear(x, w)
    found = [reference.linear(x[a:b], w[e]) for e, (a, b) in enumerate(pairwise(inputs["r"].tolist()))]
    return np.concatenate(found)


def by_expert(inputs: dict) -> list[dict]:
    """Return the inputs of each expert that has rows, since the weights of all experts together are many."""
    if "r" not in inputs:
        return [inputs]
    rows = enumerate(pairwise(inputs["r"].tolist()))
    rest = {name: value for name, value in inputs.items() if name != "r"}
    used = [
        rest | {"x": inputs["x"][a:b], "w": inputs["w"][e], "s": inputs["s"][e]}
        for e, (a, b) in rows
        if a < b
    ]
    return used or [rest | {"w": inputs["w"][0], "s": inputs["s"][0]}]


def layer(inputs: dict, case: Case) -> dict:
    """y = x W.T, for one row of x or several."""
    with np.errstate(invalid="ignore"):
        return {"y": np.concatenate([product(one, weights(one, case)) for one in by_expert(inputs)])}


def magnitudes(inputs: dict, case: Case) -> tuple[np.ndarray, np.ndarray]:
    """Return sums of |x w|, and of the terms they may be added up from if codes and zero points are separate."""
    each = [_magnitudes(one, case) for one in by_expert(inputs)]
    terms, apart = map(np.concatenate, zip(*each, strict=True))
    return terms, apart


def _magnitudes(inputs: dict, case: Case) -> tuple[np.ndarray, np.ndarray]:
    of_x = inputs | {"x": np.abs(inputs["x"].astype(np.float64))}
    terms = product(of_x, np.abs(weights(inputs, case)))
    if "G" not in case.sizes:
        return terms, terms
    q = int4(inputs, case)
    apart = (q.codes.astype(np.float64) + 15) * np.abs(reference.along_k(q.scales, q.group))
    return terms, product(of_x, apart)


def within(inputs: dict, case: Case, want: dict) -> dict:
    """One rounding of y, one of each weight to 16 bits as tensor cores take it, unless these hold it, and the error of an
    fp32 sum."""
    out = ROUNDING[case.dtypes.get("y", case.dtype)]
    of_weights = 0.0 if case.values.startswith(EXACT) else ROUNDING[case.dtype]
    with np.errstate(invalid="ignore"):
        terms, apart = magnitudes(inputs, case)
        allowed = out * np.abs(want["y"]) + of_weights * terms + sum_off(case.sizes["K"]) * apart
        if of_weights:  # a weight near 0 is rounded to a multiple of the smallest number
            allowed += SMALLEST[case.dtype] * np.abs(inputs["x"].astype(np.float64)).sum(-1)[..., None]
    return {"y": where_finite(allowed + SMALLEST[case.dtypes.get("y", case.dtype)], want["y"])}
