"""The questions of this topic, in the order in which its labs ask them."""

ORDER = (
    "route",
    "count",
    "permute",
    "experts",
    "combine",
    "tile_use",
    "layer_share",
    "order",
    "grouped_gemm",
    "fused_combine",
)
