"""Write one line of the doctor's report, and ask other programs."""

import subprocess
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[3]


@dataclass(frozen=True)
class Row:
    name: str
    state: str
    found: str
    advice: str = ""


def ok(name: str, found: str) -> Row:
    return Row(name, "ok", found)


def note(name: str, found: str, advice: str) -> Row:
    """Say that something works, with less."""
    return Row(name, "note", found, advice)


def missing(name: str, found: str, advice: str) -> Row:
    """Say that something does not work."""
    return Row(name, "missing", found, advice)


def answer(*command: str, seconds: float = 2) -> str:
    """Return a program's output, or nothing if it is missing, slow or fails."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=seconds, errors="replace")
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""
