"""The questions of this topic, in the order in which its labs ask them."""

ORDER = (
    "penalize",
    "survivors",
    "kept_share",
    "gumbel_pick",
    "inverse_pick",
    "draw",
    "masked_draw",
    "filtered_draw",
    "grouped_draw",
)
