"""tile use."""
