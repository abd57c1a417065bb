"""Limit what one run may use: processor time, operations on elements, bytes of values, and printed text."""

import time
from collections.abc import Callable
from dataclasses import dataclass

from .errors import OverLimit

LOOK_EVERY = 64  # operations between looks at the clock
LONG = 5.0  # seconds after which a run is long, and again when that time has doubled


@dataclass(frozen=True)
class Limits:
    seconds: float = 60.0  # of this process's processor time
    operations: int = 1 << 42  # elements worked on, FLOP of dots included
    bytes: int = 1 << 30  # of one program's values at a time
    prints: int = 200  # lines kept
    tell: Callable[[int, float], None] | None = None  # gets the line and the seconds of a run that is long


class Budget:
    """Count what a run uses. Raise OverLimit when it is used up."""

    def __init__(self, limits: Limits):
        self.limits, self.until = limits, time.process_time() + limits.seconds
        self.spent, self.ticks = 0, 0
        self.began, self.long = time.monotonic(), LONG

    def look(self, line: int, doing: Callable[[], str]) -> None:
        """`doing` says what runs, where it is too much."""
        if self.spent > self.limits.operations:
            message = f"the launches need more than {self.limits.operations:,} operations on elements"
            raise OverLimit("operations", f"{message}: {doing()}", line)
        if time.process_time() > self.until:
            message = f"the launches need more than {self.limits.seconds:g} s of processor time"
            raise OverLimit("seconds", f"{message}: {doing()}", line)
        if self.limits.tell is not None and (passed := time.monotonic() - self.began) > self.long:
            self.long = 2 * passed
            self.limits.tell(line, passed)

    def hold_bytes(self, needed: int, line: int) -> None:
        if needed > self.limits.bytes:
            message = f"one program holds {needed >> 20} MiB of values at a time, and {self.limits.bytes >> 20} MiB are the most"
            raise OverLimit("bytes", message, line)
