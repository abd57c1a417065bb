"""Describe one line of the benchmark: the operation, its contenders, and the check of its result."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

MODES = ("cold", "rotate")

Call = Callable[[], Any]
Factory = Callable[[Any], Call]


class Absent(Exception):
    """Say why a peer cannot run here."""


@dataclass(frozen=True)
class Row:
    op: str
    case: str
    dtype: str  # the matrix rate that limits it, a key of the measured ceilings ("bf16", "fp16", "fp8")
    flops: float
    bytes: float
    inputs: Callable[[int], Any]
    ours: Factory
    check: Callable[[Any, Any], float]
    tolerance: float
    peers: dict[str, Factory] = field(default_factory=dict)
    mode: str = "cold"
    most_copies: int = 256  # of the inputs, in a rotation
    quick: bool = False  # part of --quick too
    # where peers may rightly give other answers than ours
    check_peer: Callable[[Any, Any], float] | None = None
    facts: dict = field(default_factory=dict)  # more to record, JSON-ready

    def __post_init__(self):
        if self.mode not in MODES:
            raise ValueError(f"mode must be one of {', '.join(MODES)}, got {self.mode!r}; see kernels.bench")
        if self.bytes <= 0 or self.flops < 0:
            raise ValueError(
                f"bytes must be positive and flops not negative, got {self.bytes} and {self.flops}; "
                "take both from the topic's cost.py"
            )

    def limit_seconds(self, ceilings: dict[str, float]) -> float:
        """Return the time no kernel can beat on a machine with these measured ceilings (byte/s, FLOP/s)."""
        return max(self.bytes / ceilings["copy"], self.flops / ceilings.get(self.dtype, ceilings["bf16"]))
