"""Ask *best cure*, and weigh its parts."""

import numpy as np

from grader.questions import Call, NumpyQuestion, Part
from grader.questions.draws import between
from grader.topics.next_bottleneck.best_cure import cases
from grader.topics.next_bottleneck.best_cure.mistakes import MISTAKES
from grader.topics.next_bottleneck.shared import LESSON

QUESTION = NumpyQuestion(
    id="next_bottleneck.best_cure",
    notebook="concepts",
    asks="best_cure(times, removable): the index of the part whose cure removes the most time, the step's seconds after that one cure, and how many times faster the step is. times holds the seconds of each part, and removable the share of these seconds that the part's cure removes",
    entry="best_cure",
    parts=(Part("values", 2, "calls"),),
    reference=cases.best_cure,
    public=(
        Call((np.array([4.2, 2.8, 1.2, 0.8, 1.0]), np.array([0.05, 0.5, 0.5, 0.0, 0.75])), "a decode step"),
        Call((np.array([5.0, 3.0, 2.0]), np.array([0.5, 0.4, 1.0])), "three parts"),
    ),
    hidden=lambda rng: (
        [Call(cases.profile(rng, between(rng, 3, 9)), "another profile") for _ in range(6)]
        + [Call((rng.uniform(1, 3, 6), rng.uniform(0, 1, 6)), "any shares") for _ in range(3)]
        + [
            Call(
                (rng.uniform(0.9, 1.1) * np.array([4.0, 0.2, 2.0]), np.array([0.3, 0.9, 0.1])),
                "a cure of a small part",
            ),
            Call((np.array([2.0, 4.0, 1.0]), np.array([0.5, 0.25, 0.5])), "two cures that save as much"),
            Call((np.array([3.0]), np.array([0.25])), "a single part"),
        ]
    ),
    where=f'{LESSON}/a_next.ipynb, "The ceiling of a cure"',
    hints=(
        "The largest part isn't always the one that can be made much smaller.",
        "Multiply each part's time by the share that its cure removes. The largest of these products is what one cure saves.",
        "saved = times * removable; part = int(saved.argmax()); after = times.sum() - saved[part]; return part, after, times.sum() / after",
    ),
    mistakes=MISTAKES,
)
