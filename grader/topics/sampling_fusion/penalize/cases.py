"""Draw the inputs of *penalize* and limit their cost."""

from grader.questions.draws import between, log_uniform
from grader.topics.sampling_fusion import shared_rows
from grader.topics.sampling_fusion.shared_concepts import row


def penalize(logits, output, repetition, frequency, presence):
    return shared_rows.penalised(logits, output, (repetition, frequency, presence))


def penalised(rng, vocabulary, longest):
    history = [int(t) for t in rng.integers(0, vocabulary, between(rng, longest // 2, longest))]
    history += history[:2] * 3  # some tokens many times
    return (
        row(rng, vocabulary),
        history,
        log_uniform(rng, 0.5, 2.5),
        float(rng.uniform(-1, 1)),
        float(rng.uniform(-0.6, 1)),
    )
