"""gemm bytes."""
