"""Ask the questions of `expert_load_balance`, and judge them."""
