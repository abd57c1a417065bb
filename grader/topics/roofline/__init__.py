"""Ask the questions of `roofline`, and judge them."""
