"""Right answers that nobody expected."""
