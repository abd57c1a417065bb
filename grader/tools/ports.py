"""Find ports of this machine without a listener."""

import socket


def free_ports(count: int = 1) -> list[int]:
    """Return ports. All are held open during the search, so that none comes twice."""
    opened = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [one.getsockname()[1] for one in opened]
    for one in opened:
        one.close()
    return ports
