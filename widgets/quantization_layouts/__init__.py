"""The simulators of this topic, in the order in which they are met."""

ORDER = ("payoff_accountant", "block_scales", "fragment_map", "kbit_dispatch", "kv_capacity")
