"""Collect the mistakes of the launches inside, and the bytes they move (`with tilescope.watch() as seen:`)."""

from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from . import launcher
from .asked import ON_REQUEST, SEEING
from .call import Call
from .checking import Checked
from .findings import Finding, of_refusal
from .floors import Kernel
from .lines import Line, Work
from .machine.tree import BadIR


@dataclass
class Moved:
    """Bytes that launches move in one tensor by one kind of access, summed over launches."""

    requested: int = 0
    fetched: int = 0  # of whole 32-byte sectors
    wave: int = 0  # each byte once in every 16 programs
    unique: int = 0  # each byte once per launch

    def add(self, counts: dict) -> None:
        self.requested += counts["requested"]
        self.fetched += counts["sectors"]
        self.wave += counts["wave"]
        self.unique += counts["unique"]


@dataclass
class Bytes:
    """The bytes that launches move in one tensor."""

    load: Moved = field(default_factory=Moved)
    store: Moved = field(default_factory=Moved)
    atomic: Moved = field(default_factory=Moved)


class Seen:
    """Findings and traffic of every launch since a watch began."""

    def __init__(
        self,
        *looks,
        all_configs: bool = False,
        overflow: bool = False,
        nan: bool = False,
        atomics: bool = False,
        seconds: float | None = None,
    ):
        self.all_configs, self.overflow, self.nan, self.atomics = all_configs, overflow, nan, atomics
        self.seconds = seconds  # of processor time that a launch may take
        self.looks = looks  # more looks at each launch, each with `wants` and `look`
        self.launches, self.findings = 0, []
        self.bytes: dict[str, Bytes] = defaultdict(Bytes)  # by the parameter's name
        self.kernels: dict[str, Kernel] = defaultdict(Kernel)  # by name
        self._lines: dict[tuple, Line] = {}
        self._work: dict[tuple, Work] = {}

    @property
    def lines(self) -> list[Line]:
        """One row for each line and kind of access, in the order of the source."""
        return [self._lines[key] for key in sorted(self._lines)]

    @property
    def work(self) -> list[Work]:
        """One row for each line that computes, in the order of the source."""
        return [self._work[key] for key in sorted(self._work)]

    @property
    def recording(self):
        """the steps of one program, if requested"""
        return next((one.recording for one in self.looks if hasattr(one, "recording")), None)

    @property
    def errors(self) -> list[Finding]:
        return [finding for finding in self.findings if finding.severity == "error"]

    def take(self, call: Call, checked: Checked) -> None:
        self.note(checked.findings)
        for (number, kind), row in checked.lines.rows.items():
            key = (row.file, number, kind, row.kernel)
            self._lines.setdefault(key, Line(*key[:1], row.kernel, number, kind)).add(row)
        for number, row in checked.lines.work().items():
            key = (row.file, number, row.kernel)
            self._work.setdefault(key, Work(row.file, row.kernel, number)).add(row)
        for launch in checked.report.launches:
            self.kernels[call.kernel].add(launch)
            for tensor, kinds in launch.tensors.items():
                for kind, counts in kinds.items():
                    getattr(self.bytes[tensor], kind).add(counts)

    def refused(self, kernel: str, file: str, error: BadIR) -> None:
        """Notes a launch that could not even begin."""
        self.launches += 1
        self.note([of_refusal(kernel, file, error)])

    def note(self, findings: list[Finding]) -> None:
        """Keep each mistake once. A later launch that repeats it adds to its `times`."""
        counted = []  # once a launch
        for finding in findings:
            known = next((f for f in self.findings if f.same_as(finding)), None)
            if known is None:
                known = replace(finding)
                self.findings.append(known)
            elif known not in counted:
                known.times += 1
            counted.append(known)


@contextmanager
def watch(*looks, program: int | tuple[int, ...] | None = None, **asked) -> Iterator[Seen]:
    """Check every launch inside, and collect findings instead of raising them. This installs the launcher for good.

    The checks all_configs, overflow, nan and atomics run only on request. A launch may take `seconds` of
    processor time. With `program`, that program's
    steps are kept as `seen.recording`. `looks` are further checks of this kind.
    """
    if unknown := asked.keys() - {*ON_REQUEST, "seconds"}:
        raise TypeError(
            f"watch takes program, seconds, {', '.join(ON_REQUEST)}, got {', '.join(sorted(unknown))}"
        )
    launcher.install()
    if program is not None:
        from .stepping import Stepping, Wanted

        looks = (*looks, Stepping(Wanted(program)))
    with collect(*looks, **asked) as seen:
        yield seen


@contextmanager
def collect(*looks, **asked) -> Iterator[Seen]:
    """Collects the findings of launches that another watch checks."""
    seen = Seen(*looks, **asked)
    SEEING.append(seen)
    try:
        yield seen
    finally:
        SEEING.remove(seen)
