"""balance gradient."""
