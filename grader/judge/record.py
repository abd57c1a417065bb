"""Keep the Record: everything known about one verdict, as plain data, written once."""

import hashlib
import json
import platform
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field, replace
from functools import cache
from pathlib import Path

from grader import paths
from grader.verdicts import EXIT, FAIL, INCONCLUSIVE, OPEN, PASS, REFUSED, WRONG_USAGE  # noqa: F401  who reads a record reads these

STUB = {"kind": "NotImplementedError"}  # raised by a cell that isn't begun


@dataclass
class PartResult:
    """Hold one part of a question, with its points and three lines for the task, the result, and where to look."""

    name: str
    points: float
    of: float
    evidence: str = ""
    asked: str = ""
    came: str = ""
    look: str = ""
    state: str = PASS  # PASS, FAIL, INCONCLUSIVE, OPEN or "not reached"
    told: str = ""  # what feedback may say instead of `came`, where that holds a number drawn in secret
    asked_openly: str = ""  # and instead of `asked`
    facts: dict = field(default_factory=dict)


@dataclass
class Record:
    question: str
    verdict: str
    points: float
    of: float
    mode: str
    parts: list[PartResult] = field(default_factory=list)
    message: str = ""  # for a refusal or trouble of our own
    line: int | None = None
    printed: str = ""
    hints: list[str] = field(default_factory=list)  # what a report may fold beneath a failure
    seed: str = ""
    answer: str = ""  # hash of the normalised text
    key: str = ""
    level: int = 0
    versions: dict = field(default_factory=dict)
    machine: str = ""
    date: str = ""
    seconds: float = 0.0

    walk = None  # opens the stepper on the failed case, set by a notebook's check

    def step(self, program=None):
        """Walk through the failed case, line by line. `program` chooses one of its programs."""
        if self.walk is None:
            raise ValueError(
                "step needs a kernel that failed its check in this notebook, got none; run its check again"
            )
        return self.walk(program=program)

    @property
    def passed(self) -> bool:
        return self.verdict == PASS

    @property
    def open_points(self) -> float:
        """Return the points of the parts that this system cannot judge."""
        return sum(part.of for part in self.parts if part.state == OPEN)

    @property
    def not_started(self) -> bool:
        """Return whether the cell is still the lab's stub."""
        errors = (part.facts.get("error") or {} for part in self.parts)
        return any(error.get("kind") == STUB["kind"] for error in errors)

    @property
    def unsettled(self) -> bool:
        """Return whether any part is still open. Open points aren't the answer's fault and need a person or another
        run."""
        return INCONCLUSIVE in (self.verdict, *(part.state for part in self.parts))

    def for_feedback(self) -> "Record":
        """Return the same verdict without a number that only a secret seed could give."""
        stub = {"error": STUB} if self.not_started else {}  # which tells no number
        shown = [
            replace(p, came=p.told, asked=p.asked_openly or p.asked, facts=stub) if p.told else p
            for p in self.parts
        ]
        return replace(self, parts=shown, seed="")

    def as_json(self) -> dict:
        return asdict(self)

    @classmethod
    def from_json(cls, data: dict) -> "Record":
        return cls(**{**data, "parts": [PartResult(**p) for p in data["parts"]]})

    def _repr_html_(self) -> str:
        from grader.judge import report

        return report.html(self)

    def __str__(self) -> str:
        from grader.judge import report

        return report.text(self)

    __repr__ = __str__


def versions() -> dict:
    """Return the versions that made the evidence, as first read in this process."""
    return dict(_installed())


@cache  # looked up for every key, it was a third of the time that entering a class took
def _installed() -> dict:
    """Read from the installed packages, so nothing heavy is imported."""
    from importlib.metadata import PackageNotFoundError, version

    found = {"python": platform.python_version()}
    for package in ("triton", "torch", "numpy"):
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = "absent"
    return found


def key(answer: str, specification: str, mode: str, machine: str, epoch: str) -> str:
    """Return the record's key, so that a CPU record never answers a GPU grade, nor one machine's record another's."""
    text = json.dumps([answer, specification, mode, machine, epoch, versions()])
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def save(record: Record) -> Path | None:
    """Write the record under a name of its own. If the disk refuses, the learner loses nothing."""
    try:
        place = paths.records() / record.question
        place.mkdir(parents=True, exist_ok=True)
        path = (
            place
            / f"{time.strftime('%Y%m%dT%H%M%S')}-{time.monotonic_ns() % 10**9:09d}-{record.key[:8]}.json"
        )
        path.write_text(json.dumps(record.as_json(), indent=1) + "\n", encoding="utf-8")
        return path
    except OSError:
        return None


def last(question: str) -> dict | None:
    """Return the learner's newest Record of a question as a plain dict, for a simulator to show next to its model."""
    return next(kept(question), None)


def best(question: str) -> dict | None:
    """Return the record with the most points, the newest among equals. Breaking an answer to see it fail loses
    nothing."""
    return max(kept(question), key=lambda record: float(record.get("points") or 0), default=None)


def kept(question: str) -> Iterator[dict]:
    """Return all records that can be read, the newest first."""
    for path in sorted((paths.records() / question).glob("*.json"), reverse=True):
        try:
            record = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            continue
        if isinstance(record, dict):
            yield record
