"""The simulators of this topic, in the order in which they are met."""

ORDER = ("roofline", "memory_energy", "fusion_traffic", "launch_overhead")
