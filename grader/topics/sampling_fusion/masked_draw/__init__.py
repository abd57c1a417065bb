"""masked draw."""
