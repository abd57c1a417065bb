"""outer difference."""
