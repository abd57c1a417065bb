"""`with tilescope.watch() as seen:` collects what the launches inside do wrong, and what they move."""

from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from . import launcher
from .call import Call
from .checking import Checked, Memories
from .findings import Finding
from .lines import Line
from .machine.tree import BadIR


@dataclass
class Moved:
    """Bytes that launches move in one tensor by one kind of access, summed over launches."""

    requested: int = 0
    fetched: int = 0  # of whole 32-byte sectors
    unique: int = 0  # each byte once per launch

    def add(self, counts: dict) -> None:
        self.requested += counts["requested"]
        self.fetched += counts["sectors"]
        self.unique += counts["unique"]


@dataclass
class Bytes:
    """The bytes that launches move in one tensor."""

    load: Moved = field(default_factory=Moved)
    store: Moved = field(default_factory=Moved)
    atomic: Moved = field(default_factory=Moved)


class Seen:
    """Findings and traffic of every launch since a watch began."""

    def __init__(self, *looks):
        self.looks = looks  # more looks at each launch; each has `wants` and `look`
        self.before: Memories | None = None
        self.launches, self.findings = 0, []
        self.bytes: dict[str, Bytes] = defaultdict(Bytes)  # by the parameter's name
        self._lines: dict[tuple, Line] = {}

    @property
    def lines(self) -> list[Line]:
        """One row for each line and kind of access, in the order of the source."""
        return [self._lines[key] for key in sorted(self._lines)]

    @property
    def recording(self):
        """What one program did, where that was asked for."""
        return next((one.recording for one in self.looks if hasattr(one, "recording")), None)

    @property
    def errors(self) -> list[Finding]:
        return [finding for finding in self.findings if finding.severity == "error"]

    def begin(self, call: Call) -> None:
        """Keeps the memory of a launch that has to run once more, before it runs."""
        self.wanted = [look for look in self.looks if look.wants(call, self.launches)]
        self.before = Memories(call) if self.wanted else None

    def take(self, call: Call, checked: Checked) -> None:
        for look in self.wanted:
            look.look(call, checked, self.before)
        self.before = None
        self.launches += 1
        self.note(checked.findings)
        for (number, kind), row in checked.lines.rows.items():
            key = (row.file, number, kind, row.kernel)
            self._lines.setdefault(key, Line(*key[:1], row.kernel, number, kind)).add(row)
        for launch in checked.report.launches:
            for tensor, kinds in launch.tensors.items():
                for kind, counts in kinds.items():
                    getattr(self.bytes[tensor], kind).add(counts)

    def refused(self, kernel: str, file: str, error: BadIR) -> None:
        """Notes a launch that could not even begin."""
        self.launches += 1
        self.note([Finding("not run", str(error), kernel, file, error.line or None)])

    def note(self, findings: list[Finding]) -> None:
        """Keeps each mistake once; a later launch that makes it too adds to its `times`."""
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
def watch(*looks, program: int | tuple[int, ...] | None = None, births: bool = False) -> Iterator[Seen]:
    """Checks every launch inside, and collects findings instead of raising them. Installs the launcher for good.

    With `program`, what that program does is kept as `seen.recording`. With `births`, each line that makes a NaN or an
    infinity of finite numbers is a warning. `looks` are more looks of their kind.
    """
    launcher.install()
    if births:
        from .births import LookForBirths

        looks = (LookForBirths(), *looks)
    if program is not None:
        from .stepping import Stepping, Wanted

        looks = (*looks, Stepping(Wanted(program)))
    seen = Seen(*looks)
    launcher.SEEING.append(seen)
    try:
        yield seen
    finally:
        launcher.SEEING.remove(seen)
