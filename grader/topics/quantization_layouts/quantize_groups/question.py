"""Ask *quantize groups*, and weigh its parts."""

import numpy as np

from grader.questions import Call, NumpyQuestion, Part
from grader.topics.quantization_layouts.quantize_groups import cases
from grader.topics.quantization_layouts.quantize_groups.mistakes import MISTAKES
from grader.topics.quantization_layouts.shared import LESSON
from grader.topics.quantization_layouts.shared_concepts import quantize_groups, weights

QUESTION = NumpyQuestion(
    id="quantization_layouts.quantize_groups",
    notebook="concepts",
    asks="quantize_groups(w, group, zero_points): (codes, scales, zeros) of a float64 weight (N, K), where `group` neighbours of a row share an fp16 scale and a zero point, and w is near (code - zero) scale",
    entry="quantize_groups",
    parts=(Part("values", 3, "calls"),),
    reference=quantize_groups,
    public=(
        Call((weights(np.random.default_rng(5), 32, n=2, groups=2), 32, False), "without zero points"),
        Call((weights(np.random.default_rng(6), 32, n=2, groups=2), 32, True), "with zero points"),
        Call((cases.with_zeros(np.random.default_rng(7), 32), 32, False), "a group of zeros"),
    ),
    hidden=lambda rng: [
        *(Call((weights(rng, g), g, z), "another group") for g in (32, 64, 128) for z in (False, True)),
        Call((weights(rng, 32, shift=4.0), 32, True), "weights of one sign"),
        Call((cases.all_below(weights(rng, 32, shift=-4.0)), 32, True), "weights of one sign"),
        Call((weights(rng, 64, shift=-1.5), 64, True), "weights that lean to one side"),
        *(
            Call((cases.halves(rng, 32, z), 32, z), "weights half a step between two codes")
            for z in (False, True)
        ),
        Call(
            (cases.all_below(cases.tiny(rng, 32, -5.7)), 32, True),
            "weights near the smallest numbers of fp16, all below 0",
        ),
        Call((cases.with_zeros(rng, 32), 32, True), "a group of zeros"),
        Call((cases.tiny(rng, 32), 32, False), "weights near the smallest numbers of fp16"),
        Call((cases.tiny(rng, 32), 32, True), "weights near the smallest numbers of fp16, with zero points"),
        Call((weights(rng, 32, n=24, groups=12, size=0.02), 32, False), "many weights"),
        Call((weights(rng, 32, n=24, groups=12, size=0.02), 32, True), "many weights, with zero points"),
    ],
    where=f'{LESSON}/b_codes.ipynb, "From numbers to codes"',
    hints=(
        "w.reshape(n, -1, group) has a group along its last axis. Which number of each group decides the scale, with zero points and without?",
        "Without zero points, the scale is the largest magnitude over 7, and codes are np.rint(w / scale) + 8. With zero points, take low and high, extended to include 0. The scale is (high - low) / 15, the zero point np.rint(-low / scale), and codes are np.rint(w / scale) + zero. Round the scale to fp16 before you divide by it, and clip.",
        "scales = (np.abs(blocks).max(-1) / 7).astype(np.float16); s = scales.astype(float); step = np.divide(1.0, s, out=np.zeros_like(s), where=s > 0); codes = np.clip(np.rint(blocks * step[..., None]), -7, 7) + 8",
    ),
    mistakes=MISTAKES,
)
