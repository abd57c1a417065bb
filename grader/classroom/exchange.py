"""Read hand-ins from nbgrader's exchange: when each student handed in, and which hand-in counts."""

from datetime import datetime
from pathlib import Path

from grader.classroom import gradebooks
from grader.classroom.open_safely import time_in


def place(root: Path) -> Path:
    """Return the exchange's folder, the course's own default even for a copy of the course."""
    found = Path(gradebooks.settings(root, "any").Exchange.root)
    inside = found.is_relative_to(gradebooks.ROOT)
    return root / found.relative_to(gradebooks.ROOT) if inside else found


def times(root: Path, lab: str) -> dict[str, list[datetime]]:
    """student -> when each of the hand-ins was made that wait in the exchange or were collected from it, oldest first."""
    found: dict[str, list[datetime]] = {}
    for folder in place(root).glob(f"*/inbound/*+{lab}+*"):
        student, _, stamp, *_ = [*folder.name.split("+", 3), ""]
        if when := time_in(stamp.encode()):
            found.setdefault(student, []).append(when)
    return {student: sorted(every) for student, every in found.items()}


def said(lab: str, handed_in: list[datetime], counts: datetime | None) -> list[str]:
    """Say which of several hand-ins counts, and whether a newer one was not collected yet."""
    newer = [one for one in handed_in if counts is None or one > counts]
    words = (
        [f"a newer hand-in of {_at(newer[-1])} is in the exchange: run nbgrader collect {lab}"]
        if newer
        else []
    )
    if len(handed_in) > 1 and counts is not None:
        words.insert(0, f"handed in {len(handed_in)} times: the one of {_at(counts)} counts")
    return words


def _at(when: datetime) -> str:
    return f"{when:%Y-%m-%d %H:%M} UTC"
