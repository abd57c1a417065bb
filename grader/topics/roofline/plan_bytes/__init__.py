"""plan bytes."""
