"""The questions of this topic, in the order in which its labs ask them."""

ORDER = (
    "reuse",
    "tile_loads",
    "gemm_bytes",
    "tiled_matmul",
    "tiled_gemm",
    "block_scaled_gemm",
)
