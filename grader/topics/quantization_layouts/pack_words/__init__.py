"""pack words."""
