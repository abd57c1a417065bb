"""The simulators of this topic, in the order in which they are met."""

ORDER = ("tile_walk", "fp8_accumulator")
