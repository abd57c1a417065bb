"""Share draws among numpy questions of gemm tiling."""

from grader.questions.draws import between


def sizes(rng, low=1, high=300):
    return tuple(between(rng, low, high) for _ in range(3))


def tile(rng, sides=2, high=200):
    return tuple(between(rng, 2, high) for _ in range(sides))
