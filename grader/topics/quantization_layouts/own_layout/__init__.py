"""own layout."""
