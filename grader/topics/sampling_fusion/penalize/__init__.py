"""penalize."""
