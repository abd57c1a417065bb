"""Ask *to planes*, and weigh its parts."""

import numpy as np

from grader.questions import Call, NumpyQuestion, Part
from grader.topics.quantization_layouts.shared import LESSON
from grader.topics.quantization_layouts.shared_concepts import codes
from grader.topics.quantization_layouts.to_planes import cases
from grader.topics.quantization_layouts.to_planes.mistakes import MISTAKES

QUESTION = NumpyQuestion(
    id="quantization_layouts.to_planes",
    notebook="concepts",
    asks="to_planes(codes, bits): codes (N, K) of `bits` bits as uint32 planes (bits, N, K / 32): word i of plane b holds bit b of columns 32 i to 32 i + 31, the first column in its lowest bit",
    entry="to_planes",
    parts=(Part("values", 2, "calls"),),
    reference=cases.to_planes,
    public=(
        Call((codes(np.random.default_rng(3), 1, 32, 3), 3), "one word a plane"),
        Call((codes(np.random.default_rng(4), 2, 64, 5), 5), "five bits"),
    ),
    hidden=lambda rng: [Call(cases.planes(rng, bits), f"{bits} bits") for bits in (2, 3, 4, 5)],
    where=f'{LESSON}/c_packing.ipynb, "Packing: where the bits lie"',
    hints=(
        "Codes of three bits don't fill a word evenly, but one bit of each of 32 codes does. Which words do you get for bit 0 alone?",
        "For one plane: codes.reshape(n, -1, 32).astype(np.uint32) >> b & 1 is one bit per column. Shift column j by j and add up. Then do the same for every plane.",
        "np.stack([((each >> b & 1) << np.arange(32, dtype=np.uint32)).sum(-1, dtype=np.uint32) for b in range(bits)]), where each is codes.reshape(n, -1, 32).astype(np.uint32)",
    ),
    mistakes=MISTAKES,
)
