"""layer share."""
