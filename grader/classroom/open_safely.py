"""Read a student's hand-in without trusting a byte. It refuses links and large files, and parses in another
process."""

import errno
import json
import os
import re
import stat
import subprocess
import sys
from dataclasses import dataclass, field
from datetime import datetime
from functools import lru_cache
from pathlib import Path

READER = Path(__file__).with_name("parse_sandboxed.py")
MOST_BYTES = 2_000_000
STUDENT = re.compile(r"\w[^/*?\[\]\\]*")  # what nbgrader can find again, and a table of grades may hold
TIME = "timestamp.txt"  # nbgrader's own note in a submission
MOST_OF_A_TIME = 200  # bytes, of its file
READER_S = 60  # by the wall clock, while the reader's own limit is seconds of processor time


class IntakeTrouble(Exception):
    """Trouble of our own, because the reader did not run. Never the student's fault."""


@dataclass(frozen=True)
class Cell:
    kind: str  # code or markdown
    source: str
    cut: bool = False  # longer than any cell may be
    printed: str = ""  # what it printed where it was run last


@dataclass(frozen=True)
class Submitted:
    """The cells of one submitted notebook, by name. `trouble` says why there are none."""

    found: dict[str, list[Cell]] = field(default_factory=dict)
    copies: dict[str, int] = field(default_factory=dict)
    after: dict[str, list[Cell]] = field(
        default_factory=dict
    )  # a student's own cells, by the cell above them
    edited: dict[str, Cell] = field(
        default_factory=dict
    )  # cells of the lab that aren't answers, changed or run
    found_by: dict[str, str] = field(
        default_factory=dict
    )  # answers without a name, found by "function" or "place"
    more: int = 0  # own cells beyond those that are shown
    odd: dict = field(default_factory=dict)  # what cells say of themselves that the lab does not
    trouble: str = ""


def take_in(path: Path, asked: dict) -> Submitted:
    """Return the notebook at .../STUDENT/LAB/NAME.ipynb as plain cells. `asked` selects the cells for the reader."""
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
    """Return a plain file of at most this many bytes, with no link on the way below the folder of all students."""
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
        if error.errno in (errno.ELOOP, errno.ENOTDIR):  # what a system says of a link that isn't followed
            raise Unfit("is a link, and links are not read. Ask for the file itself") from None
        raise Unfit(f"could not be opened as a plain file ({error.strerror})") from None
    finally:
        for fd in opened:
            os.close(fd)


def time_in(data: bytes) -> datetime | None:
    """Return a timestamp.txt's time in UTC, or None if nbgrader could not read it."""
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
    """Return the reader's result for a notebook that has not changed since."""
    return json.loads(_read_out(data, asked, READER, READER_S))


@lru_cache(maxsize=8)  # one student's notebooks are read three times on the way into the gradebook
def _read_out(data: bytes, asked: str, reader: Path, longest_s: float) -> str:
    """Run the reader. If its own limits end it, the notebook is to blame. Anything else is our fault."""
    command = [sys.executable, "-I", "-S", "-B", str(reader)]
    try:
        run = subprocess.run(
            command,
            input=asked.encode() + b"\n" + data,
            capture_output=True,
            timeout=longest_s,
            cwd="/",
            env={},
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise IntakeTrouble(f"the reader of notebooks did not run: {error}") from error
    if run.returncode < 0:
        return '{"unreadable": "takes more time or memory to read than a notebook may"}'
    if run.returncode:
        raise IntakeTrouble(f"the reader of notebooks failed: {run.stderr.decode(errors='replace')[-300:]}")
    return run.stdout.decode()
