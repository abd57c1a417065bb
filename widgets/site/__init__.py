"""Build the course as plain pages: every lesson to read, every simulator live, no server."""
