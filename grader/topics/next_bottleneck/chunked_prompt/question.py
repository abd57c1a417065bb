"""Ask *chunked prompt*, and weigh its parts."""

from grader.questions import Call, NumpyQuestion, Part
from grader.questions.draws import between
from grader.topics.next_bottleneck.chunked_prompt import cases
from grader.topics.next_bottleneck.chunked_prompt.mistakes import MISTAKES
from grader.topics.next_bottleneck.shared import LESSON

QUESTION = NumpyQuestion(
    id="next_bottleneck.chunked_prompt",
    notebook="concepts",
    asks="chunked_prompt(prompt, chunk, running, weights_s, token_s): the seconds until a prompt of this many tokens is computed in chunks, and the longest time that the running requests wait for a token meanwhile. A step computes one token of each running request and up to chunk tokens of the prompt, and takes weights_s or token_s per token, whichever is longer",
    entry="chunked_prompt",
    parts=(Part("values", 2, "calls"),),
    reference=cases.chunked_prompt,
    public=(
        Call((4096, 512, 64, 8.6e-3, 2.9e-5), "eight chunks"),
        Call((1000, 256, 64, 8.6e-3, 2.9e-5), "a last chunk that is smaller"),
    ),
    hidden=lambda rng: (
        [Call(cases.case(rng, True), "large chunks") for _ in range(4)]
        + [Call(cases.case(rng, False), "small chunks") for _ in range(3)]
        + [
            Call(
                (between(rng, 900, 2000), 4096, between(rng, 8, 60), 8e-3, 3e-5), "a whole prompt in one step"
            ),
            Call((1024, 256, 0, 8e-3, 3e-5), "nobody else"),
        ]
    ),
    where=f'{LESSON}/f_pools.ipynb, "Way one: cut the prompt"',
    hints=(
        "How many tokens does each step compute, the last one included?",
        "Each step takes max(weights_s, (running + piece) * token_s). All pieces have chunk tokens except the last, which has the rest.",
        "pieces = [min(chunk, prompt - done) for done in range(0, prompt, chunk)]; steps = [max(weights_s, (running + n) * token_s) for n in pieces]; return sum(steps), max(steps)",
    ),
    mistakes=MISTAKES,
)
