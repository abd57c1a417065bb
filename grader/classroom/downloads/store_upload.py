"""Put one student's files into submitted/, whole or not at all. Earlier files are set aside, never lost."""

import os
import secrets
import shutil
from pathlib import Path

from grader.classroom.atomic_file import PLACE
from grader.classroom.open_safely import TIME


def place(root: Path, lab: str, student: str, files: dict[str, bytes], time: str = "") -> str:
    """'new', 'as before', or 'replaced' with the earlier hand-in set aside.

    A notebook of the lab that was handed in before and is not in `files` stays. `time` is when it was handed in.
    """
    folder = root / "submitted" / student / lab
    if os.path.islink(folder.parent) or os.path.islink(folder):
        raise ValueError(f"submitted/{student}/{lab} must be a folder, got a link. Remove the link")
    there = _read(folder)
    wanted = {path.name for path in (root / "labs" / lab).glob("*.ipynb")}
    kept = sorted(wanted & set(there or {}) - set(files))
    files = files | {name: there[name] for name in kept}
    if there == files:
        if time and _time(folder) != time:
            (folder / TIME).write_text(time, encoding="utf-8")
            return f"as before, handed in {time}"
        return "as before"
    new = folder.with_name(f".{lab}.{secrets.token_hex(4)}")
    new.mkdir(parents=True)
    try:
        for name, data in files.items():
            (new / name).write_bytes(data)
        if time or there is not None and _time(folder):
            (new / TIME).write_text(time or _time(folder), encoding="utf-8")
        if there is not None:
            aside = root / PLACE / "set_aside" / student / f"{lab}-{secrets.token_hex(4)}"
            aside.parent.mkdir(parents=True, exist_ok=True)
            os.rename(folder, aside)
        os.rename(new, folder)
    finally:
        shutil.rmtree(new, ignore_errors=True)
    if there is None:
        return "new"
    return "replaced" + f", except that {', '.join(kept)} of the earlier hand-in stays" * bool(kept)


def keeps_time(root: Path, lab: str, student: str, files: dict[str, bytes]) -> bool:
    """Return whether an earlier hand-in has the lab's notebooks and `files` has none. Then only the earlier hand-in
    can be judged."""
    wanted = {path.name for path in (root / "labs" / lab).glob("*.ipynb")}
    readable = wanted & set(files) or any(name.lower().endswith(".zip") for name in files)
    return not readable and bool(wanted & set(_read(root / "submitted" / student / lab) or {}))


def _time(folder: Path) -> str:
    try:
        return (folder / TIME).read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""


def _read(folder: Path) -> dict[str, bytes] | None:
    """Return the present files without nbgrader's time stamp, or None."""
    if not folder.is_dir():
        return None
    files = (path for path in sorted(folder.rglob("*")) if path.is_file() and path.name != TIME)
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}
