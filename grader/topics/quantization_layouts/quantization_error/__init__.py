"""quantization error."""
