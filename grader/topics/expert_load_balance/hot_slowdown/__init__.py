"""hot slowdown."""
