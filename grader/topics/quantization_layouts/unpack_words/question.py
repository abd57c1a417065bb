"""Ask *unpack words*, and weigh its parts."""

import numpy as np

from grader.questions import Call, NumpyQuestion, Part
from grader.questions.draws import between
from grader.topics.quantization_layouts.shared import LESSON
from grader.topics.quantization_layouts.unpack_words import cases
from grader.topics.quantization_layouts.unpack_words.mistakes import MISTAKES

QUESTION = NumpyQuestion(
    id="quantization_layouts.unpack_words",
    notebook="concepts",
    asks="unpack_words(words): the codes again, (N, K), from uint32 words (N, K / 8) that hold eight neighbours each, the first in the lowest four bits",
    entry="unpack_words",
    parts=(Part("values", 1, "calls"),),
    reference=cases.unpack_words,
    public=(
        Call((np.array([[0x76543210]], np.uint32),), "one word"),
        Call((cases.words(np.random.default_rng(2), 2, 2),), "two rows of two words"),
    ),
    hidden=lambda rng: [
        Call((cases.words(rng, between(rng, 2, 9), between(rng, 2, 9)),), "other words") for _ in range(5)
    ],
    where=f'{LESSON}/c_packing.ipynb, "Packing: where the bits lie"',
    hints=(
        "Undo the packing. Which shift brings the third code to the lowest bits, and which bits are still above it then?",
        "words[..., None] >> (4 * np.arange(8)) has each of the eight codes in the lowest bits of its own entry, along a new last axis. Cut off the bits above with & 15.",
        "(words[..., None] >> (4 * np.arange(8, dtype=np.uint32)) & 15).reshape(len(words), -1)",
    ),
    mistakes=MISTAKES,
)
