"""The questions of this topic, in the order in which its labs ask them."""

ORDER = (
    "pack_words",
    "unpack_words",
    "to_planes",
    "quantize_groups",
    "quantization_error",
    "layer_bytes",
    "step_times",
    "repack",
    "w4a16_gemv",
    "w4a16_gemm",
    "dispatch",
    "kbit_gemm",
    "grouped_kbit",
    "own_layout",
    "quantize_blocks",
)
