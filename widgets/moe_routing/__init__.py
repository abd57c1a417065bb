"""The simulators of this topic, in the order in which they are met."""

ORDER = ("moe_forward", "tile_utilization")
