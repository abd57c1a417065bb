"""dispatch tokens."""
