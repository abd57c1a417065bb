"""Ask *audit*, and weigh its parts."""

from grader.questions import Call, NumpyQuestion, Part
from grader.topics.next_bottleneck.audit import cases
from grader.topics.next_bottleneck.audit.mistakes import MISTAKES
from grader.topics.next_bottleneck.shared import LESSON

QUESTION = NumpyQuestion(
    id="next_bottleneck.audit",
    notebook="concepts",
    asks="audit(before_s, after_s, share, tokens_s): a report says that cutting one part, which had this share of the step, took the step from before_s to after_s, and that the server then makes tokens_s tokens per second. Return the share of that part's time that must have been removed, the shortest step that is possible if only that part changes, and the requests in flight",
    entry="audit",
    parts=(Part("values", 2, "calls"),),
    reference=cases.audit,
    public=(
        Call((0.085, 0.048, 0.38, 720.0), "round 1 of the playbook"),
        Call((0.1, 0.08, 0.4, 500.0), "a report that fits"),
    ),
    hidden=lambda rng: (
        [Call(cases.report(rng), "another report") for _ in range(7)]
        + [Call((0.05, 0.05, 0.3, 1000.0), "nothing gained")]
    ),
    where=f'{LESSON}/i_playbook.ipynb, "Round 1: fewer bits"',
    hints=(
        "Divide the seconds that were saved by the seconds that the part took.",
        "The part took share * before_s. Without the part, the rest of the step remains. By Little's law the requests in flight are rate times time, and each request gets a token every after_s.",
        "(before_s - after_s) / (share * before_s), before_s * (1 - share), tokens_s * after_s",
    ),
    mistakes=MISTAKES,
)
