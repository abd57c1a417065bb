"""Draw the inputs of *capacity kept* and limit their cost."""

from grader.questions.draws import between, odd
from grader.topics.expert_load_balance.shared_concepts import drawn_ids
from kernels.expert_load_balance import cost, reference


def capacity_kept(topk_ids, experts, factor):
    capacity = cost.capacity_limit(*topk_ids.shape, experts, factor)
    return capacity, reference.kept_by_capacity(topk_ids, experts, capacity)


def just_above(rng, by):
    """A limit a hair above a whole number, by a factor that is exact in binary."""
    experts = 2 ** between(rng, 2, 3)
    return drawn_ids(rng, experts * between(rng, 3, 7), 2, experts, 1.5), experts, 1 + by


def limited(rng, factor, top_k=2):
    experts = 2 ** between(rng, 2, 3)
    return drawn_ids(rng, odd(rng, 19, 60), top_k, experts, 1.5), experts, factor
