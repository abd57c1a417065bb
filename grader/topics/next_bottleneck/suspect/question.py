"""Ask *suspect*, and weigh its parts."""

from grader.questions import Call, NumpyQuestion, Part
from grader.topics.next_bottleneck.shared import LESSON
from grader.topics.next_bottleneck.suspect import cases
from grader.topics.next_bottleneck.suspect.mistakes import MISTAKES

QUESTION = NumpyQuestion(
    id="next_bottleneck.suspect",
    notebook="concepts",
    asks='suspect(input_wait, launch_gap, skew, exposed, intensity, ridge, compute, bandwidth): the first of the waits "input", "launches", "stragglers" and "communication" that counts (a share above 0.10, a skew above 1.05). If none counts, "memory" below the ridge or "compute" from the ridge on, if the kernel reaches at least 0.7 of that roof, and otherwise "implementation"',
    entry="suspect",
    parts=(Part("values", 2, "calls"),),
    reference=cases.suspect,
    public=(
        Call((0.0, 0.2, 1.0, 0.0, 1.0, 295.0, 0.002, 0.6), "many thin bars"),
        Call((0.0, 0.0, 2.6, 0.3, 40.0, 295.0, 0.07, 0.5), "one hot expert"),
        Call((0.0, 0.0, 1.0, 0.0, 5.4, 295.0, 0.015, 0.84), "a LayerNorm"),
    ),
    hidden=lambda rng: (
        [Call(cases.seen(rng), "memory near its roof") for _ in range(2)]
        + [
            Call(
                cases.seen(rng, bandwidth=rng.uniform(0.2, 0.6), compute=rng.uniform(0.72, 0.9)),
                "far below its own roof",
            ),
            Call(cases.seen(rng, bandwidth=rng.uniform(0.2, 0.6)), "far below both roofs"),
            Call(
                cases.seen(
                    rng, intensity=rng.uniform(310, 2000), compute=rng.uniform(0.72, 0.9), bandwidth=0.3
                ),
                "compute near its roof",
            ),
            Call(
                cases.seen(
                    rng, intensity=rng.uniform(310, 2000), compute=rng.uniform(0.1, 0.6), bandwidth=0.8
                ),
                "a wide matmul far below its roof",
            ),
            Call(
                cases.seen(rng, input_wait=rng.uniform(0.12, 0.2), launch_gap=rng.uniform(0.3, 0.6)),
                "two waits",
            ),
            Call(
                cases.seen(rng, launch_gap=rng.uniform(0.12, 0.2), exposed=rng.uniform(0.3, 0.6)),
                "gaps and communication",
            ),
            Call(cases.seen(rng, skew=rng.uniform(1.1, 2), exposed=rng.uniform(0.2, 0.5)), "ranks that wait"),
            Call(cases.seen(rng, skew=rng.uniform(1.055, 1.095)), "ranks that wait a little"),
            Call(cases.seen(rng, exposed=rng.uniform(0.2, 0.5)), "communication alone"),
            Call(cases.seen(rng, launch_gap=0.1), "a wait at its limit"),
            Call(cases.seen(rng, input_wait=0.1), "input at its limit"),
            Call(cases.seen(rng, skew=1.05), "a skew at its limit"),
            Call(cases.seen(rng, bandwidth=0.7), "a roof at its limit"),
            Call(
                cases.seen(rng, intensity=256.0, ridge=256.0, compute=0.8, bandwidth=0.9), "work at the ridge"
            ),
            Call(
                cases.seen(rng, intensity=256.0, ridge=256.0, compute=0.3, bandwidth=0.9),
                "work at the ridge, far below it",
            ),
        ]
    ),
    where=f'{LESSON}/b_profiling.ipynb, "The detective"',
    hints=(
        "Rule out every wait before you look at a roof, in the order of the names.",
        "Make four comparisons with >, in the order input, launches, stragglers, communication. Then look at the roof: below the ridge the bandwidth share counts, and from the ridge on the compute share.",
        'if input_wait > 0.1: return "input"; ...; bound, share = ("memory", bandwidth) if intensity < ridge else ("compute", compute); return bound if share >= 0.7 else "implementation"',
    ),
    mistakes=MISTAKES,
)
