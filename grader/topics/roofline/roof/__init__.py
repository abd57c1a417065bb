"""roof."""
