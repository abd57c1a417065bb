"""small product."""
