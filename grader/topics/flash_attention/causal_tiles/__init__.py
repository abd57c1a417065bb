"""causal tiles."""
