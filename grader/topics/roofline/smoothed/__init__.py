"""smoothed."""
