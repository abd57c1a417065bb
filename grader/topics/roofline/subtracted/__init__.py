"""subtracted."""
