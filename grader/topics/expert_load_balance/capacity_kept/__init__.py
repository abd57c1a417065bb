"""capacity kept."""
