"""doubled."""
