"""tile sectors."""
