"""block scaled gemm."""
