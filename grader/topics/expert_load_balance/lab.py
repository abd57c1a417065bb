"""The questions of this topic, in the order in which its labs ask them."""

ORDER = (
    "count_loads",
    "layer_time",
    "hot_slowdown",
    "least_hot_share",
    "capacity_kept",
    "balance_gradient",
    "bias_rounds",
    "place_experts",
    "copies_of",
    "dispatch_tokens",
    "expert_layer",
    "replicated_layer",
    "fixed_dispatch",
)
