"""reuse."""
