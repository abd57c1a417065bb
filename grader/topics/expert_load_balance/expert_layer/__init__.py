"""expert layer."""
