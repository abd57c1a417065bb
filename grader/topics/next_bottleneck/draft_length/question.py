"""Ask *draft length*, and weigh its parts."""

from grader.questions import Call, NumpyQuestion, Part
from grader.questions.draws import between
from grader.topics.next_bottleneck.draft_length import cases
from grader.topics.next_bottleneck.draft_length.mistakes import MISTAKES
from grader.topics.next_bottleneck.shared import LESSON

QUESTION = NumpyQuestion(
    id="next_bottleneck.draft_length",
    notebook="concepts",
    asks="draft_length(p, draft_s, pass_s, most): the number of drafts per round, 0 to most, with the shortest time per token (the smallest if several have the same time), the seconds per token with this number, and the tokens that a round then yields. Each draft takes draft_s and is accepted with probability p, and the pass that checks all drafts takes pass_s",
    entry="draft_length",
    parts=(Part("values", 2, "calls"),),
    reference=cases.draft_length,
    public=(
        Call((0.78, 0.8e-3, 32e-3, 12), "the playbook's model"),
        Call((0.25, 1e-3, 32e-3, 12), "a poor draft"),
    ),
    hidden=lambda rng: (
        [Call(cases.server(rng), "another pair of models") for _ in range(6)]
        + [
            Call((0.2, float(rng.uniform(10, 20)) * 1e-3, 32e-3, 8), "a draft that never pays"),
            Call((1.0, 1e-3, 30e-3, between(rng, 5, 9)), "every draft accepted"),
            Call((0.0, 1e-3, 30e-3, 6), "no draft accepted"),
            Call((0.5, 0.0, 1.0, 0), "no drafts allowed"),
        ]
    ),
    where=f'{LESSON}/d_speculation.ipynb, "Time per token"',
    hints=(
        "Compute the time per token for every number of drafts, and take the smallest.",
        "A round of k drafts takes k * draft_s + pass_s and yields 1 + p + p² + ... + p to the k tokens. The 1 is the target's own token.",
        "tokens = np.cumsum(p ** np.arange(most + 1)); times = (np.arange(most + 1) * draft_s + pass_s) / tokens; k = times.argmin()",
    ),
    mistakes=MISTAKES,
)
