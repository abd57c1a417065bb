"""Ask the questions of `sampling_fusion`, and judge them."""
