"""quantize groups."""
