"""copies of."""
