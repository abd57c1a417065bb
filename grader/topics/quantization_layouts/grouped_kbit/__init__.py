"""grouped kbit."""
