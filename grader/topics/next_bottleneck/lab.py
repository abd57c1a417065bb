"""The questions of this topic, in the order in which its labs ask them."""

ORDER = (
    "best_cure",
    "suspect",
    "rounds",
    "audit",
    "dispatch",
    "draft_length",
    "verify",
    "exposed",
    "queue_waits",
    "chunked_prompt",
    "goodput",
    "residual_norm",
    "rotary_cache",
)
