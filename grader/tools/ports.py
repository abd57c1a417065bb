"""Ports of this machine that nobody listens on."""

import socket


def free_ports(count: int = 1) -> list[int]:
    """All of them held at once while they are looked for, so that none comes twice."""
    opened = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [one.getsockname()[1] for one in opened]
    for one in opened:
        one.close()
    return ports
