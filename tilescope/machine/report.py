"""Report a run as plain data, for the other side of the jail's wall."""

from dataclasses import dataclass, field


@dataclass
class LaunchReport:
    kernel: str
    grid: list[int]
    programs: int  # that ran
    active: int  # that touched a tensor
    tensors: dict[str, dict[str, dict[str, int]]]  # name -> "load", "store", "atomic" -> counts
    flops: int  # of dots
    dots: dict[str, int]  # the same by the operands' type and precision: "fp16", "fp32:tf32"
    operations: dict[str, int]  # outside dots, on elements, by kinds.KINDS
    atomics: int  # lanes of atomics
    busiest: float  # operations of the program that does most, a sixteenth of its FLOP among them


@dataclass
class Report:
    launches: list[LaunchReport] = field(default_factory=list)
    races: list[dict] = field(default_factory=list)
    undecided: str = ""  # why the machine can't say what this answer does
    prints: list[dict] = field(default_factory=list)
    prints_left_out: int = 0
    unwritten: dict[str, dict] = field(
        default_factory=dict
    )  # output -> how many elements, and the first's index
    written_by_waves: dict[str, list[int]] = field(
        default_factory=dict
    )  # if requested, output -> by axis, the indices that each wave wrote, summed
    shares: dict[str, list[int]] = field(
        default_factory=dict
    )  # if only elements were requested, output -> written elements, and those of the busiest program
    stored_twice: list[list[int]] = field(
        default_factory=list
    )  # if only elements were requested, pairs of programs that store to one element
    read_unwritten: list[dict] = field(default_factory=list)
    masked_lines: list[int] = field(default_factory=list)  # of loads that had masked lanes and no `other`
    ids_read: list[list[int]] = field(
        default_factory=list
    )  # for each step, the axes of its grid that the kernel uses
    mistakes: list[dict] = field(default_factory=list)  # mistakes that a run survived, each location once
    error: dict | None = None
    seconds: float = 0.0  # of processor time
