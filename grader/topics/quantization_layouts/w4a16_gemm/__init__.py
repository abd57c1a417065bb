"""w4a16 gemm."""
