"""Ask the questions of `flash_attention`, and judge them."""
