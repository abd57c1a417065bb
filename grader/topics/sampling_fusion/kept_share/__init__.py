"""kept share."""
