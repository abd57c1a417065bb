"""split decode."""
