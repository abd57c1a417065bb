"""One student's files into submitted/: whole or not at all; what lay there before is set aside, never lost."""

import os
import secrets
import shutil
from pathlib import Path

from grader.classroom.intake import TIME
from grader.classroom.place import PLACE


def place(root: Path, lab: str, student: str, files: dict[str, bytes]) -> str:
    """'new', 'as before', or 'replaced' with the earlier hand-in set aside."""
    folder = root / "submitted" / student / lab
    if os.path.islink(folder.parent) or os.path.islink(folder):
        raise ValueError(f"submitted/{student}/{lab} must be a folder, got a link; remove it")
    there = _read(folder)
    if there == files:
        return "as before"
    new = folder.with_name(f".{lab}.{secrets.token_hex(4)}")
    new.mkdir(parents=True)
    try:
        for name, data in files.items():
            (new / name).write_bytes(data)
        if there is not None:
            aside = root / PLACE / "set_aside" / student / f"{lab}-{secrets.token_hex(4)}"
            aside.parent.mkdir(parents=True, exist_ok=True)
            os.rename(folder, aside)
        os.rename(new, folder)
    finally:
        shutil.rmtree(new, ignore_errors=True)
    return "new" if there is None else "replaced"


def _read(folder: Path) -> dict[str, bytes] | None:
    """What lies there, without nbgrader's time stamp; None where nothing does."""
    if not folder.is_dir():
        return None
    files = (path for path in sorted(folder.rglob("*")) if path.is_file() and path.name != TIME)
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}
