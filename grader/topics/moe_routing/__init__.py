"""Ask the questions of `moe_routing`, and judge them."""
