"""What attention's answers are compared with, and how far they may be from it."""

import numpy as np

from grader.questions import Case
from grader.questions.draws import ROUNDING
from grader.topics.flash_attention.cases import LOWEST
from kernels.flash_attention import reference

WEIGHT_ROUNDING = {"fp16": 2.0**-11, "bf16": 2.0**-8}  # of the softmax weights, which are rounded before P V
SUMS = 2.0**-15  # fp32 in tiles: sums, the factors between maxima and the division


def attended(inputs: dict, c: Case) -> dict:
    q, k, v = (inputs[x] for x in "qkv")
    return {"o": reference.attention(q, k, v, causal=True, scale=c.scalars["scale"])[0]}


def decoded(inputs: dict, c: Case) -> dict:
    q, k, v = (inputs[x] for x in "qkv")
    return {"o": reference.decode(q, k, v, scale=c.scalars["scale"])[0]}


def windowed(inputs: dict, c: Case) -> dict:
    more = {"window": (c.sizes["W"], 0), "softcap": c.scalars["softcap"]}
    q, k, v = (inputs[x] for x in "qkv")
    return {"o": reference.attention(q, k, v, causal=True, scale=c.scalars["scale"], **more)[0]}


def within(wanted):
    """Rounding of the output and of each weight, in the sum of what they weigh. A score's own error grows with its
    size, the more so where queries are scaled before they are rounded, as some good kernels do; where all scores are
    one power of two, it is exact."""

    def limits(inputs: dict, case: Case, want: dict) -> dict:
        terms = wanted(inputs | {"v": np.abs(inputs["v"])}, case)["o"]
        norms = [np.linalg.norm(inputs[x].astype(np.float64), axis=-1).max(initial=0) for x in ("q", "k")]
        unit = WEIGHT_ROUNDING[case.dtype]
        size = 0 if case.values == LOWEST else abs(case.scalars["scale"]) * norms[0] * norms[1] / 8
        share = unit * (1 + size) + SUMS
        return {
            name: ROUNDING[case.dtype] * (np.abs(w) + share * terms) + share * terms + 1e-6
            for name, w in want.items()
        }

    return limits
