"""place experts."""
