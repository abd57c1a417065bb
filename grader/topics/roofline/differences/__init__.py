"""differences."""
