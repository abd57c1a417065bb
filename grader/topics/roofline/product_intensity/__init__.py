"""product intensity."""
