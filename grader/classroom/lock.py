"""Lock a course for one grader at a time. Records and gradebook share one lock, which the system releases when a
process dies.

The lock is the kernel's own on an open file, so a process that was killed holds nothing. The file's text is only for
people. It says who holds the lock, where and since when.
"""

import errno
import getpass
import json
import os
import platform
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path

from grader.classroom.atomic_file import PLACE

FILE = "lock"
_held: dict[Path, list] = {}  # by file: [descriptor, how often this process holds it]


class Busy(Exception):
    """Another grader is at work on this course."""


def me() -> str:
    """The name under which this person works here."""
    try:
        return getpass.getuser()
    except (OSError, KeyError, ImportError):
        return f"user {os.getuid()}"


@contextmanager
def held(root: Path, what: str, say: Callable[[str], None] = lambda line: None) -> Iterator[None]:
    """Hold the course's lock. If another process holds it, raise Busy with who, where and since when. Holding it
    twice is fine."""
    path = (root / PLACE / FILE).resolve()
    if path in _held:
        _held[path][1] += 1
    else:
        _held[path] = [_take(path, what, say), 1]
    try:
        yield
    finally:
        _held[path][1] -= 1
        if not _held[path][1]:
            _give_back(_held.pop(path)[0])


def _take(path: Path, what: str, say: Callable) -> int:
    import fcntl

    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o660)
    except PermissionError:
        raise Busy(
            f"{path} must be writable for the user who grades, and is not for {me()}. Ask its owner"
        ) from None
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        holder = _read(file)
        os.close(file)
        if error.errno in (errno.EWOULDBLOCK, errno.EACCES):
            raise Busy(_sentence(holder)) from None
        raise Busy(f"{path} must be on a file system that can lock files, got {error.strerror}") from None
    if left := _read(file):
        say(f"taking over from {_who(left)}, which ended before it was done. Its verdicts are kept")
    _write(
        file,
        {"who": me(), "host": platform.node(), "pid": os.getpid(), "since": _now(), "what": what},
    )
    return file


def _give_back(file: int) -> None:
    os.ftruncate(file, 0)
    os.close(file)


def _now() -> str:
    return datetime.now().astimezone().isoformat(sep=" ", timespec="seconds")


def _write(file: int, holder: dict) -> None:
    os.ftruncate(file, 0)
    os.pwrite(file, json.dumps(holder).encode(), 0)


def _read(file: int) -> dict:
    try:
        found = json.loads(os.pread(file, 4096, 0))
        return found if isinstance(found, dict) else {}
    except ValueError:
        return {}


def _who(holder: dict) -> str:
    words = {key: str(holder.get(key, "?")) for key in ("who", "host", "pid", "since", "what")}
    return "{what} of {who} on {host} (process {pid}), begun {since}".format(**words)


def _sentence(holder: dict) -> str:
    whose = _who(holder) if holder else "another process, which has not said whose it is"
    return f"one grader at a time: {whose} holds this course. Wait for its end, or end it and run this again"


def command_line() -> str:
    """Return this process's command line, for people."""
    return " ".join(["python -m grader class", *sys.argv[2:]]) if sys.argv[1:2] == ["class"] else "a grader"
