"""sum and max."""
