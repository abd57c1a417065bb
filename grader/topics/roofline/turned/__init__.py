"""turned."""
