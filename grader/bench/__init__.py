"""The only process that holds a GPU: it loads IR text, launches it on its own buffers, and reads its own clock."""
