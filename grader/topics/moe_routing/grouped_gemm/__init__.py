"""grouped gemm."""
