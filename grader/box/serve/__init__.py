"""The one program that runs within every box: a warm fork server, and the frames that it speaks in."""
