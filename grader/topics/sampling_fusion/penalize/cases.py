"""Draw the inputs of *penalize* and limit their cost."""

from grader.questions.draws import between, log_uniform
from grader.topics.sampling_fusion import shared_rows
from grader.topics.sampling_fusion.shared_concepts import row


def penalize(logits, output, repetition, frequency, presence):
    return shared_rows.penalised(logits, output, (repetition, frequency, presence))


def often(rng):
    """A token that came more often than fp16 can count by ones."""
    token = int(rng.integers(0, 40))
    return row(rng, 40), [token] * between(rng, 2100, 2600), 1.0, float(rng.uniform(0.1, 1)), 0.0


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
