"""The questions of this topic, in the order in which its labs ask them."""

ORDER = (
    "product_intensity",
    "roof",
    "time_terms",
    "tile_sectors",
    "plan_bytes",
    "doubled",
    "differences",
    "subtracted",
    "turned",
    "outer_difference",
    "sum_and_max",
    "long_mean",
    "smoothed",
    "small_product",
    "tile_settings",
    "layernorm_gelu",
)
