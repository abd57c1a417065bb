"""Draw the inputs of *survivors* and limit their cost."""

from grader.questions.draws import between


def tied(rng, k=0, p=1.0):
    """Draw hundreds of tokens of three values, so that whole crowds are equal, wherever the border falls."""
    return rng.integers(0, 3, between(rng, 150, 300)).astype(float), 1.0, k, p, 0.0
