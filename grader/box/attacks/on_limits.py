"""Attack the machine's memory, disk and processes, and take time after the end."""

import errno
import mmap
import os
import signal
import time

from through import Through


def memory(facts):
    with mmap.mmap(-1, facts["memory_bytes"] + (64 << 20), flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS):
        raise Through("was given more memory than the limit")


def file_size(facts):
    _fill("big", facts["file_bytes"] + (1 << 20), 1)


def shared_memory(facts):
    _fill("/dev/shm/box-probe", facts["file_bytes"] * 3 // 4, 3)


def scratch(facts):
    _fill("many", facts["file_bytes"] * 3 // 4, 3)


def _fill(name, size, count):
    made = [f"{name}-{os.getpid()}-{i}" for i in range(count)]
    try:
        for path in made:
            with open(path, "wb", buffering=0) as file:
                for start in range(0, size, 1 << 20):
                    block = bytes(min(1 << 20, size - start))
                    if file.write(block) != len(block):
                        raise OSError(errno.ENOSPC, "short write")
    finally:
        for path in filter(os.path.exists, made):
            os.unlink(path)
    raise Through(f"wrote {count} x {size >> 10} KiB to {name}")


def daemon(facts):
    """Leave a process running. Its parent sees by its end of a pipe how long the process lives."""
    if os.fork() == 0:
        try:
            os.setsid()
        except OSError:
            pass
        if os.fork() == 0:
            for number in range(1, 32):
                if number not in (signal.SIGKILL, signal.SIGSTOP):
                    signal.signal(number, signal.SIG_IGN)
            for fd in (0, 1, 2):
                os.close(fd)
            time.sleep(3)
        os._exit(0)
    os.wait()


def processes(facts):
    made = []
    try:
        for _ in range(facts["processes"] + 32):
            child = os.fork()
            if child == 0:
                signal.pause()
            made.append(child)
    except BlockingIOError:
        return
    finally:
        for child in made:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
    raise Through(f"started {len(made)} processes, {facts['processes']} being the limit")
