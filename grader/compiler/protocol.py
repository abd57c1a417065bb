"""Define the messages to the compiler and the rows that it returns."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Request:
    """Kernels as the machine printed them, and the targets to compile them for."""

    kernels: tuple[dict, ...]  # {"name", "text", "num_warps", "num_stages"}
    targets: tuple[int, ...]

    def as_task(self) -> dict:
        return {"kernels": list(self.kernels), "targets": list(self.targets)}


@dataclass(frozen=True)
class Compiled:
    """One kernel for one target."""

    kernel: str
    target: int
    registers: int
    spilled_bytes: int
    shared_bytes: int
    instructions: dict  # name -> how often it occurs in the PTX

    @classmethod
    def from_row(cls, row: dict) -> "Compiled":
        return cls(
            kernel=str(row["kernel"]),
            target=int(row["target"]),
            registers=int(row["registers"] or 0),
            spilled_bytes=int(row["spill_stores"] or 0),
            shared_bytes=int(row["shared_bytes"]),
            instructions={str(name): int(count) for name, count in row["instructions"].items()},
        )
