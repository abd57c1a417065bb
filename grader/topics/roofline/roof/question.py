"""Ask *roof*, and weigh its parts."""

from grader.questions import Call, NumpyQuestion, Part
from grader.questions.draws import log_uniform
from grader.topics.roofline.roof import cases
from grader.topics.roofline.roof.mistakes import MISTAKES
from grader.topics.roofline.shared_concepts import H200, LESSON, machine

QUESTION = NumpyQuestion(
    id="roofline.roof",
    notebook="concepts",
    asks='roof(intensity, peak, bandwidth): the FLOP/s that can be reached, and "memory" left of the ridge or "compute" from the ridge on',
    entry="roof",
    parts=(Part("values", 2, "calls"),),
    reference=cases.roof,
    public=(
        Call((1.0, *H200), "decoding"),
        Call((500.0, *H200), "a large product"),
        Call((200.0, 312e12, 2.0e12), "another machine"),
    ),
    hidden=lambda rng: [
        *(Call((log_uniform(rng, 1, 5000), *machine(rng)), "another machine") for _ in range(4)),
        Call(cases.near_ridge(rng), "work at the very ridge"),
        Call((rng.uniform(1, 9), 1e15, 1e12), "left of the ridge"),
        Call((rng.uniform(2000, 9000), 1e15, 1e12), "right of the ridge"),
    ],
    where=f'{LESSON}, "The roofline"',
    hints=(
        "There are two roofs above every intensity. Which of the two is lower?",
        "Memory allows bandwidth * intensity FLOP per second, and the arithmetic units allow peak. The lower of the two is the limit. The ridge is at peak / bandwidth.",
        'min(peak, bandwidth * intensity), "memory" if intensity < peak / bandwidth else "compute"',
    ),
    mistakes=MISTAKES,
)
