"""Move everything that isn't a plain, small file out of a submission, before nbgrader copies its other files."""

import os
import secrets
import stat
from pathlib import Path

from grader.classroom.grading_round import PLACE
from grader.classroom.open_safely import MOST_BYTES, TIME, time_in

MOST_FILES = 100
WHY = f"only plain files with plain names, of at most {MOST_BYTES / 1e6:g} MB each and at most {MOST_FILES} in all, come along"


def hook(assignment: str, student: str, notebooks: list[str]) -> None:
    """Run as nbgrader's pre_convert_hook, called for each submission with its notebooks."""
    for folder in sorted({Path(notebook).parent for notebook in notebooks}):
        set_aside(folder)


def set_aside(folder: Path) -> list[str]:
    """Move links, devices, pipes, large or countless files and bad time stamps of .../STUDENT/LAB away. Return their
    names."""
    root = folder.parents[2]
    place = root / PLACE / "set_aside" / folder.parent.name / f"{folder.name}-{secrets.token_hex(4)}"
    if folder.is_symlink():
        return [_move(folder, place)]
    return [_move(path, place / path.relative_to(folder)) for path in odd(folder)]


def odd(folder: Path) -> list[Path]:
    """Return what isn't a plain small file, or has a name that no log can hold. Notebooks stay, because they are read
    with care."""
    found, seen = [], 0
    for place, folders, files in os.walk(folder):
        away = [name for name in folders if not name.isprintable() or (Path(place) / name).is_symlink()]
        folders[:] = sorted(set(folders) - set(away))
        found += [Path(place) / name for name in away]
        for name in sorted(files):
            path = Path(place) / name
            seen += 1
            if path.suffix == ".ipynb" and Path(place) == folder and name.isprintable():
                continue
            if seen > MOST_FILES or not _comes_along(path):
                found.append(path)
    return found


def _comes_along(path: Path) -> bool:
    return path.name.isprintable() and _plain(path) and (path.name != TIME or _can_be_read(path))


def _plain(path: Path) -> bool:
    facts = path.lstat()
    return stat.S_ISREG(facts.st_mode) and facts.st_size <= MOST_BYTES


def _can_be_read(path: Path) -> bool:
    """A time that nbgrader can't read ends its work on that student, and its lists for all."""
    return time_in(path.read_bytes()) is not None


def _move(path: Path, target: Path) -> str:
    target.parent.mkdir(parents=True, exist_ok=True)
    os.rename(path, target)
    return path.name
