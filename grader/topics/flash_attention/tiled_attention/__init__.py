"""tiled attention."""
