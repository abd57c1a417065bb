"""least hot share."""
