"""to planes."""
