"""Ask the questions of `quantization_layouts`, and judge them."""
