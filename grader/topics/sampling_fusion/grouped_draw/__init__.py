"""grouped draw."""
