"""Define how much a boxed program may use, and the three strengths of box."""

from dataclasses import dataclass
from enum import IntEnum


class Level(IntEnum):
    LIMITS = 1
    LANDLOCK = 2
    BUBBLEWRAP = 3


NO_BOX = 0  # answers run in the judge's own process, allowed only when you check your own answers
LEVELS = {
    Level.BUBBLEWRAP: "bubblewrap: files, processes, network and user of its own, fewer system calls",
    Level.LANDLOCK: "Landlock: only the files it needs, fewer system calls, no sockets, but other processes are visible",
    Level.LIMITS: "limits only: time, memory and file size, but it may read and do whatever the caller may",
}


class BoxError(Exception):
    """The box could not be made or is too weak. The trouble is ours, never the program's."""


@dataclass(frozen=True)
class Limits:
    """None means no limit. Memory and scratch count for the whole box, processor time and file size for a process."""

    wall_s: float | None = None
    cpu_s: int | None = 600
    memory_bytes: int = 6 << 30
    processes: int = 64
    file_bytes: int = 256 << 20  # one file, and all of scratch together
    output_bytes: int = 1 << 30  # through Box.read_exactly

    def __post_init__(self):
        for name, value in vars(self).items():
            if value is not None and not value > 0:
                raise ValueError(f"{name} must be positive, got {value}. Leave it out for the default")


def size_text(count: int) -> str:
    for unit, name in ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")):
        if count >= unit:
            return f"{count / unit:.3g} {name}"
    return f"{count} bytes"
