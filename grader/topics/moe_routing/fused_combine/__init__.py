"""fused combine."""
