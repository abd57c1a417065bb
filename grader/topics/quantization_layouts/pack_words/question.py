"""Ask *pack words*, and weigh its parts."""

import numpy as np

from grader.questions import Call, NumpyQuestion, Part
from grader.questions.draws import between
from grader.topics.quantization_layouts.pack_words import cases
from grader.topics.quantization_layouts.pack_words.mistakes import MISTAKES
from grader.topics.quantization_layouts.shared import LESSON
from grader.topics.quantization_layouts.shared_concepts import codes

QUESTION = NumpyQuestion(
    id="quantization_layouts.pack_words",
    notebook="concepts",
    asks="pack_words(codes): uint8 codes of four bits, (N, K), as uint32 words, (N, K / 8): word i of a row holds columns 8 i to 8 i + 7, the first in its lowest four bits",
    entry="pack_words",
    parts=(Part("values", 2, "calls"),),
    reference=cases.pack_words,
    public=(
        Call((np.arange(8, dtype=np.uint8).reshape(1, 8),), "one word"),
        Call((codes(np.random.default_rng(1), 2, 16),), "two rows of two words"),
    ),
    hidden=lambda rng: (
        [Call((codes(rng, between(rng, 2, 9), 8 * between(rng, 2, 9)),), "other codes") for _ in range(5)]
        + [Call((np.full((2, 24), 15, np.uint8),), "nothing but the largest code")]
    ),
    where=f'{LESSON}/c_packing.ipynb, "Packing: where the bits lie"',
    hints=(
        "Eight codes of four bits fill a word of 32 bits. How far must the second code be shifted so that it is above the first? And the third?",
        "Code j of a word is shifted by 4 j. Widen first: codes.reshape(n, -1, 8).astype(np.uint32); then shift, and add up the last axis.",
        "(codes.reshape(len(codes), -1, 8).astype(np.uint32) << (4 * np.arange(8, dtype=np.uint32))).sum(-1, dtype=np.uint32)",
    ),
    mistakes=MISTAKES,
)
