"""filtered draw."""
