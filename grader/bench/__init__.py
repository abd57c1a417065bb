"""Hold the GPU in the only process that has one: it loads IR text, launches it on its own buffers, and reads its own
clock."""
