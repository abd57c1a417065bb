"""Draw the inputs of *balance gradient* and limit their cost."""

from kernels.expert_load_balance import reference


def balance_gradient(x, router, topk_ids):
    """The auxiliary loss and its gradient by the router's weights."""
    value, by_logits = reference.auxiliary_loss(x @ router, topk_ids)
    return value, x.T @ by_logits


def routed(rng, tokens, experts, top_k, apart=1.0):
    """Tokens with much in common, a router, and what it chose."""
    x = rng.standard_normal((tokens, 6)) + 2 * rng.standard_normal(6)
    router = apart * rng.standard_normal((6, experts)) / 2
    return x, router, reference.choose(reference.probabilities(x @ router), top_k)
