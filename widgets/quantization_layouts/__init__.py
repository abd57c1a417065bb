"""The simulators of this topic, in the order in which they are met."""

ORDER = ("payoff_accountant", "block_scales", "kbit_dispatch", "kv_capacity", "fragment_map")
