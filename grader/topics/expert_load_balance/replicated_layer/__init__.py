"""replicated layer."""
