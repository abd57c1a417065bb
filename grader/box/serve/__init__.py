"""Serve requests in every box: the one program there, a warm fork server, and the frames of its messages."""
