"""The simulators of this topic, in the order in which they are met."""

ORDER = ("sampling_chain", "sampling_rules")
