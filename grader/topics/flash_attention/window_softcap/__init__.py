"""window softcap."""
