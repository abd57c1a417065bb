"""count loads."""
