"""tiled matmul."""
