"""step times."""
