"""The questions of this topic, in the order in which its labs ask them."""

ORDER = (
    "online_softmax",
    "tiled_attention",
    "attention_bytes",
    "causal_tiles",
    "forward",
    "split_decode",
    "window_softcap",
    "backward",
)
