"""Ask *quantization error*, and weigh its parts."""

import numpy as np

from grader.questions import Call, NumpyQuestion, Part
from grader.topics.quantization_layouts.quantization_error import cases
from grader.topics.quantization_layouts.quantization_error.mistakes import MISTAKES
from grader.topics.quantization_layouts.shared import LESSON

QUESTION = NumpyQuestion(
    id="quantization_layouts.quantization_error",
    notebook="concepts",
    asks="quantization_error(w, codes, scales, zeros, group): the root mean square of the error as a share of the root mean square of w, and the largest error, where each error is divided by the scale of its own group",
    entry="quantization_error",
    parts=(Part("values", 2, "calls"),),
    reference=cases.quantization_error,
    public=(
        Call(cases.quantized(np.random.default_rng(8), 32, False, n=2, groups=2), "without zero points"),
        Call(cases.quantized(np.random.default_rng(9), 32, True, n=2, groups=3), "with zero points"),
    ),
    hidden=lambda rng: (
        [Call(cases.quantized(rng, g, z), "another weight") for g in (32, 64) for z in (False, True)]
        + [Call(cases.quantized(rng, 32, True, shift=2.0), "weights that lean to one side")]
    ),
    where=f'{LESSON}/b_codes.ipynb, "From numbers to codes"',
    hints=(
        "First compute the weights that the codes represent. How do you multiply codes of shape (N, K) by scales of shape (N, K / group)?",
        "np.repeat(scales, group, axis=1) gives each column its group's scale. Widen the codes before you subtract the zero point: uint8 has no -1.",
        "off = (codes.astype(float) - z) * s - w; then np.sqrt((off**2).mean() / (w**2).mean()), (np.abs(off) / s).max()",
    ),
    mistakes=MISTAKES,
)
