"""The simulators of this topic, in the order in which they are met."""

ORDER = (
    "decode_chain",
    "backend_dispatcher",
    "comm_overlap",
    "speculative_decoding",
    "playbook_70b",
    "serving_queue",
    "scaling_tax",
    "efficiency_frontier",
    "recorded_trace",
    "profiler_detective",
)
