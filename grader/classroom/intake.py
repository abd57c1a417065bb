"""What a student handed in, read without trusting a byte of it: no links, no large files, parsed by another process."""

import json
import os
import re
import stat
import subprocess
import sys
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

READER = Path(__file__).with_name("read_notebook.py")
MOST_BYTES = 2_000_000
STUDENT = re.compile(r"\w[^/*?\[\]\\]*")  # what nbgrader can find again, and a table of grades may hold
TIME = "timestamp.txt"  # nbgrader's own note beside a submission
MOST_OF_A_TIME = 200  # bytes of it
READER_S = 60  # by the wall clock; the reader's own limit is seconds of processor time


class IntakeTrouble(Exception):
    """Trouble of our own: the reader did not run. Never the student's fault."""


@dataclass(frozen=True)
class Cell:
    kind: str  # code or markdown
    source: str
    cut: bool = False  # longer than any cell may be
    printed: str = ""  # what it printed where it was run last


@dataclass(frozen=True)
class Submitted:
    """The cells of one submitted notebook, by name; `trouble` says why there are none."""

    found: dict[str, list[Cell]] = field(default_factory=dict)
    copies: dict[str, int] = field(default_factory=dict)
    after: dict[str, list[Cell]] = field(
        default_factory=dict
    )  # a student's own cells, by the cell above them
    edited: dict[str, Cell] = field(
        default_factory=dict
    )  # cells of the lab that are nobody's answer, changed or run
    found_by: dict[str, str] = field(default_factory=dict)  # answers without a name: by "function" or "place"
    more: int = 0  # own cells beyond those that are shown
    odd: dict = field(default_factory=dict)  # what cells say of themselves that the lab does not
    trouble: str = ""


def take_in(path: Path, asked: dict) -> Submitted:
    """The notebook at .../STUDENT/LAB/NAME.ipynb as plain cells; `asked` says which, as the reader wants it."""
    try:
        data = read_regular(path)
    except Unfit as why:
        return Submitted(trouble=f"{path.name} {why}")
    said = _parse(data, json.dumps(asked))
    if "unreadable" in said:
        return Submitted(trouble=f"{path.name} {said['unreadable']}")

    def cells(rows):
        return {name: [Cell(*row) for row in found] for name, found in rows.items()}

    edited = {name: Cell(*row) for name, row in said["edited"].items()}
    return Submitted(
        cells(said["found"]),
        said["copies"],
        cells(said["after"]),
        edited,
        said["found_by"],
        said["more"],
        said["odd"],
    )


class Unfit(Exception):
    """Why a file is not read."""


def read_regular(path: Path, most: int = MOST_BYTES) -> bytes:
    """A plain file of at most so many bytes; no link on the way below the folder of all students."""
    follow_no_link = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC
    opened = [os.open(path.parents[2], os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)]
    try:
        for folder in (path.parents[1].name, path.parents[0].name):
            opened.append(os.open(folder, follow_no_link | os.O_DIRECTORY, dir_fd=opened[-1]))
        opened.append(os.open(path.name, follow_no_link | os.O_NONBLOCK, dir_fd=opened[-1]))
        facts = os.fstat(opened[-1])
        if not stat.S_ISREG(facts.st_mode):
            raise Unfit("is not a plain file")
        data = b"" if facts.st_size > most else _read(opened[-1], most + 1)
        if max(facts.st_size, len(data)) > most:
            todo = ": clear the outputs of all cells, save, and hand in again" * (most == MOST_BYTES)
            raise Unfit(f"is {facts.st_size / 1e6:.1f} MB, and at most {most / 1e6:g} MB are read{todo}")
        return data
    except OSError as error:
        raise Unfit(f"could not be opened as a plain file ({error.strerror})") from None
    finally:
        for fd in opened:
            os.close(fd)


def time_in(data: bytes) -> datetime | None:
    """What a timestamp.txt says, in UTC; None where nbgrader could not read it."""
    from nbgrader.utils import parse_utc

    try:
        return parse_utc(data[:MOST_OF_A_TIME].decode().strip())
    except Exception:  # whatever a date parser may do with a stranger's text
        return None


def _read(fd: int, most: int) -> bytes:
    parts, total = [], 0
    while total < most and (data := os.read(fd, most - total)):
        parts.append(data)
        total += len(data)
    return b"".join(parts)


def _parse(data: bytes, asked: str) -> dict:
    """Runs the reader. Its death by its own limits is the notebook's doing; anything else is ours."""
    command = [sys.executable, "-I", "-S", "-B", str(READER)]
    try:
        run = subprocess.run(
            command,
            input=asked.encode() + b"\n" + data,
            capture_output=True,
            timeout=READER_S,
            cwd="/",
            env={},
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise IntakeTrouble(f"the reader of notebooks did not run: {error}") from error
    if run.returncode < 0:
        return {"unreadable": "takes more time or memory to read than a notebook may"}
    if run.returncode:
        raise IntakeTrouble(f"the reader of notebooks failed: {run.stderr.decode(errors='replace')[-300:]}")
    return json.loads(run.stdout)
