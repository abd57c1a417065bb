"""Hand kernels of one topic to the rows of another topic.

Topics import nothing from each other. Here, one level up, a kernel is handed over as a plain call.
"""

from collections.abc import Callable


def expert_load_balance() -> dict[str, Callable]:
    """The layer of moe_routing without its router, on rows that have been routed elsewhere."""
    from kernels.moe_routing.arguments import Experts
    from kernels.moe_routing.chosen import layer_of_chosen

    def fused(gate_up, down):
        experts = Experts(gate_up, down)
        return lambda x, slots, out: layer_of_chosen(x, slots, experts, out=out)

    return {"fused": fused}


def next_bottleneck() -> dict[str, dict]:
    """The decode step's slots, filled with the topics' kernels."""
    from kernels.decode_step import fillings

    return {"fillings": fillings()}


TOPICS = {"expert_load_balance": expert_load_balance, "next_bottleneck": next_bottleneck}


def handed_to(slug: str) -> dict:
    """Return the keywords for the topic's `rows`."""
    return TOPICS[slug]() if slug in TOPICS else {}
