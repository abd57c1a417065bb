"""inverse pick."""
