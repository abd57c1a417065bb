"""time terms."""
