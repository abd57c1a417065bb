"""What `gemm_tiling` asks: its questions and all that they are judged by."""
