"""w4a16 gemv."""
