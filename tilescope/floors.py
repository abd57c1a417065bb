"""Bound a kernel's time from below by the time that a GPU needs at least for its bytes and its arithmetic."""

from collections import Counter
from dataclasses import dataclass, field

GPU, BANDWIDTH = "an H200", 4.8e12  # bytes a second
DOTS = {  # FLOP a second of dense matrix units, by the operands' type as launches count it
    "fp64": 67e12,
    "fp32:ieee": 67e12,
    "fp32:tf32x3": 495e12 / 3,
    "fp32:tf32": 495e12,
    "fp16": 989e12,
    "bf16": 989e12,
}
FASTEST = 1979e12  # of 8 bits, and of what is not listed
LANES = 67e12  # operations a second outside dots, if every multiplication goes with an addition
FLOATS = ("float", "special", "convert")


@dataclass
class Kernel:
    """All launches of one kernel."""

    launches: int = 0
    bytes: int = 0  # each once in a launch
    dots: Counter = field(default_factory=Counter)  # FLOP by the operands' type
    operations: int = 0  # of floats, outside dots

    def add(self, launch) -> None:
        self.launches += 1
        self.bytes += sum(counts["unique"] for kinds in launch.tensors.values() for counts in kinds.values())
        self.dots.update(launch.dots)
        self.operations += sum(launch.operations.get(kind, 0) for kind in FLOATS)

    @property
    def seconds(self) -> dict[str, float]:
        """Return the least time of one launch by each limit."""
        dots = sum(flop / DOTS.get(kind, FASTEST) for kind, flop in self.dots.items())
        each = {"memory": self.bytes / BANDWIDTH, "dots": dots, "other arithmetic": self.operations / LANES}
        return {limit: seconds / max(1, self.launches) for limit, seconds in each.items()}

    @property
    def limit(self) -> str:
        """Return the limit with the longest time, which is the limit that holds."""
        return max(self.seconds, key=self.seconds.get)

    @property
    def floor(self) -> float:
        return self.seconds[self.limit]


def said(name: str, kernel: Kernel) -> str:
    """Say how long one launch takes at least, and which limit says so."""
    each = ", ".join(f"{limit} {in_words(seconds)}" for limit, seconds in kernel.seconds.items())
    return (
        f"{name}: a launch takes at least {in_words(kernel.floor)} on {GPU}, by its {kernel.limit} ({each})"
    )


def in_words(seconds: float) -> str:
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds * 1e9:.3g} ns"
