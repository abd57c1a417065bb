"""unpack words."""
