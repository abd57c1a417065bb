"""Read bytes from another process's pipe, or raise an error that says why not."""

import os
import select
import time


def read_exactly(fd: int, count: int, deadline: float) -> bytes:
    """EOFError where the other side ended before, TimeoutError where it was too late."""
    parts = []
    while count:
        if not select.select([fd], [], [], max(0.0, deadline - time.monotonic()))[0]:
            raise TimeoutError("no answer in time")
        data = os.read(fd, min(count, 1 << 20))
        if not data:
            raise EOFError("the program ended")
        parts.append(data)
        count -= len(data)
    return b"".join(parts)
