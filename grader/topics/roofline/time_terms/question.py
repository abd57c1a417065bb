"""Ask *time terms*, and weigh its parts."""

from grader.questions import Call, NumpyQuestion, Part
from grader.topics.roofline.shared_concepts import H200, LESSON
from grader.topics.roofline.time_terms import cases
from grader.topics.roofline.time_terms.mistakes import MISTAKES

QUESTION = NumpyQuestion(
    id="roofline.time_terms",
    notebook="concepts",
    asks='time_terms(flops, bytes_moved, overhead_s, peak, bandwidth, efficiency): the seconds of bytes, of arithmetic and in total (with bytes and arithmetic overlapped), and the name of the largest term, "memory", "compute" or "overhead"',
    entry="time_terms",
    parts=(Part("values", 3, "calls"),),
    reference=cases.time_terms,
    public=(
        Call((2e9, 4e8, 5e-6, *H200, 0.7)),
        Call((1e12, 4e8, 5e-6, *H200, 0.7), "much arithmetic"),
        Call((1e6, 1e6, 5e-6, *H200, 1.0), "little of either"),
    ),
    hidden=lambda rng: [
        Call(cases.work(rng, name), f"the most is {name}")
        for name in ("memory", "compute", "overhead")
        for _ in range(2)
    ],
    where=f'{LESSON}, "The iron law"',
    hints=(
        "There are three terms, and each is a time. Which two of them can overlap?",
        "The first two terms are bytes / bandwidth and FLOP / (peak * efficiency). The total is the larger of these two plus the overhead.",
        "m, c = bytes_moved / bandwidth, flops / (peak * efficiency); then m, c, max(m, c) + overhead_s, and the name of max(m, c, overhead_s)",
    ),
    mistakes=MISTAKES,
)
