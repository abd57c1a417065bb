"""What a packed layer gives, by the topic's reference, and how far a right answer may be off."""

import numpy as np

from grader.questions import Case
from grader.questions.draws import ROUNDING, SMALLEST, where_finite
from kernels.quantization_layouts import reference

FP32_SUM = 2.0**-16  # of the sum of magnitudes: an fp32 sum in any order, with zero points taken apart or not
SHIFTS = 4 * np.arange(8, dtype=np.uint32)


def codes_of(inputs: dict) -> np.ndarray:
    """Eight codes of each word along the last axis, the first in its lowest four bits."""
    each = inputs["w"].view(np.uint32)[..., None] >> SHIFTS & 15
    return each.astype(np.uint8).reshape(*inputs["w"].shape[:-1], -1)


def int4(inputs: dict, case: Case) -> reference.Int4:
    return reference.Int4(codes_of(inputs), inputs["s"], inputs.get("z"), case.sizes["G"])


def layer(inputs: dict, case: Case) -> dict:
    """y = x W.T, for one row of x or several."""
    with np.errstate(invalid="ignore"):
        return {"y": reference.linear(inputs["x"], reference.values(int4(inputs, case)))}


def within(inputs: dict, case: Case, want: dict) -> dict:
    """One rounding of y, one of each weight to 16 bits as tensor cores take it, and the error of an fp32 sum."""
    q, x = int4(inputs, case), np.abs(inputs["x"].astype(np.float64))
    out = ROUNDING[case.dtypes.get("y", case.dtype)]
    with np.errstate(invalid="ignore"):
        terms = reference.linear(x, np.abs(reference.values(q)))
        apart = reference.linear(x, (q.codes.astype(np.float64) + 15) * reference.along_k(q.scales, q.group))
        allowed = out * np.abs(want["y"]) + ROUNDING[case.dtype] * terms + FP32_SUM * apart
    return {"y": where_finite(allowed + SMALLEST[case.dtypes.get("y", case.dtype)], want["y"])}
