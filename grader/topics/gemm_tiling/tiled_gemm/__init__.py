"""tiled gemm."""
