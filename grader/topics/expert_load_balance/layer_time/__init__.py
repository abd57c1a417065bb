"""layer time."""
