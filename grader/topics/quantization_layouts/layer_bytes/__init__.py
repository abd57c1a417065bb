"""layer bytes."""
