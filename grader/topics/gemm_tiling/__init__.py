"""Ask the questions of `gemm_tiling`, and judge them."""
