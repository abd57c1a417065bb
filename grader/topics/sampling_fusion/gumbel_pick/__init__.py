"""gumbel pick."""
