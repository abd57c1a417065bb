"""Build the course as plain pages, with every lesson to read and every simulator live, without a server."""
