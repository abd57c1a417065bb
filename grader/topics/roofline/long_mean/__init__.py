"""long mean."""
