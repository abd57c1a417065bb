"""layernorm gelu."""
