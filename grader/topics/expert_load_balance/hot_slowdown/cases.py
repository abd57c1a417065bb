"""Draw the inputs of *hot slowdown* and limit their cost."""

from grader.questions.draws import between


def cold(rng):
    devices = 2 ** between(rng, 1, 3)
    experts, top_k = 2 * devices, between(rng, 1, 2)
    return top_k, experts, devices, top_k / experts * rng.uniform(0.1, 0.8)
