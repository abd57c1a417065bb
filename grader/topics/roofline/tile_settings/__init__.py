"""tile settings."""
