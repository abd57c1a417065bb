"""kbit gemm."""
