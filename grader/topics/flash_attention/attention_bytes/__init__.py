"""attention bytes."""
