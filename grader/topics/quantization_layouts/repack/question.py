"""Ask *repack*, and weigh its parts."""

import numpy as np

from grader.questions import Call, NumpyQuestion, Part
from grader.questions.draws import between
from grader.topics.quantization_layouts.repack import cases
from grader.topics.quantization_layouts.repack.mistakes import MISTAKES
from grader.topics.quantization_layouts.shared import LESSON


def _drawn(rng, scattered=True):
    group = (16, 32, 64)[between(rng, 0, 2)]
    n, groups = 16 * between(rng, 1, 4), between(rng, 2, 4)
    return cases.checkpoint(rng, n, groups * group, group, scattered)


QUESTION = NumpyQuestion(
    id="quantization_layouts.repack",
    notebook="concepts",
    asks="repack(qweight, g_idx): (order, words) of a GPTQ checkpoint: the columns sorted by group, and uint32 words (N / 16, K / 16, 32), one per lane of each tile",
    entry="repack",
    parts=(Part("values", 3, "calls"),),
    reference=cases.repack,
    public=(
        Call(cases.checkpoint(np.random.default_rng(3), 16, 16, 16, False), "one tile, one group"),
        Call(cases.checkpoint(np.random.default_rng(4), 32, 64, 32), "groups scattered over K"),
    ),
    hidden=lambda rng: (
        [Call(_drawn(rng), "other checkpoints") for _ in range(4)]
        + [Call(_drawn(rng, False), "groups in order")]
        + [Call(cases.checkpoint(rng, 16, 128, 16), "as many columns as eight tiles")]
    ),
    where=f'{LESSON}/f_lane_by_lane.ipynb, "Repack a GPTQ checkpoint"',
    hints=(
        "There are three steps of a line or two each. Unpack the codes to (N, K), put the columns in the order of their groups, then cut tiles. Try a single tile first, with run(repack, 0).",
        "np.argsort(g_idx, kind='stable') is the order. Split N into (N / 16, 2, 8) and K into (K / 16, 2, 4, 2), then transpose so that the 8 rows and 4 pairs form the lane, and the three axes of length 2 form the nibble.",
        "t = codes[:, order].reshape(n // 16, 2, 8, k // 16, 2, 4, 2).transpose(0, 3, 2, 5, 6, 1, 4).reshape(n // 16, k // 16, 32, 8), then shift by 4 * np.arange(8) and add.",
    ),
    mistakes=MISTAKES,
    bonus=True,
)
