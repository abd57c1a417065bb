"""tile loads."""
