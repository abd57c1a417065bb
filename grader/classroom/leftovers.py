"""List everything in submitted/ that no lab uses, each with a recommendation. Nothing is moved."""

import difflib
import os
import stat
from pathlib import Path

from grader.classroom.open_safely import MOST_BYTES, TIME
from grader.judge.report import visible

NOISE = {
    ".ipynb_checkpoints",
    "__pycache__",
    "__MACOSX",
    ".DS_Store",
    "Thumbs.db",
    "desktop.ini",
    TIME,
    "submission_secret.txt",  # nbgrader's own, of a hand-in by its exchange
}
ARCHIVES = (".tar", ".gz", ".tgz", ".bz2", ".xz", ".7z", ".rar")
NOTEBOOK = ".ipynb"
MOST_FOLDERS = 200  # that are looked through for a notebook


def shown(name: str) -> str:
    return visible(name).replace("\n", "\\n").replace("\t", "\\t")[:80]


def in_lab(folder: Path, wanted: list[str]) -> list[str]:
    """Return a sentence for each file and folder of .../STUDENT/LAB that is ignored. Files that are set aside name
    themselves."""
    if folder.is_symlink() or folder.parent.is_symlink() or not folder.is_dir():
        return []
    names = sorted(set(os.listdir(folder)) - set(wanted) - NOISE)
    said = [
        _of(folder / name, wanted)
        for name in names
        if name.isprintable() and not name.lower().endswith(".zip")
    ]
    return [sentence for sentence in said if sentence]


def _of(path: Path, wanted: list[str]) -> str:
    kind, name = path.lstat().st_mode, shown(path.name)
    if stat.S_ISDIR(kind):
        return _of_folder(path, wanted)
    if not stat.S_ISREG(kind):
        return (
            f"{name} is a link or no plain file, and was not read." if name.lower().endswith(NOTEBOOK) else ""
        )
    if name.lower().endswith(NOTEBOOK):
        return _of_notebook(path, name, wanted)
    if path.lstat().st_size > MOST_BYTES:
        return ""
    if name.lower().endswith(ARCHIVES):
        return f"{name} is an archive and was not read. Unpack it here and run this again."
    if meant := next((one for one in wanted if Path(one).stem == path.stem.casefold()), ""):
        return (
            f"{name} is not a notebook and was not read (is it meant to be {meant}?). Ask for the notebook."
        )
    return f"{name} was not read. Graders find it next to the notebooks."


def _of_notebook(path: Path, name: str, wanted: list[str]) -> str:
    meant = _meant(path.stem.casefold(), {Path(one).stem.casefold(): one for one in wanted})
    if meant and (path.parent / meant).exists():
        return f"{name} was not read, because {meant} counts. If it is the newer one, give it that name and run this again."
    if meant:
        return f"{name} is not a notebook of this lab and was not read (is it meant to be {meant}?). Rename it and run this again."
    return (
        f"{name} is not a notebook of this lab and was not read. "
        f"If it is one under another name, rename it to {' or '.join(wanted)} and run this again."
    )


def _meant(stem: str, wanted: dict[str, str]) -> str:
    """Return the notebook whose name is in this one, or is nearly this one, or nothing."""
    inside = sorted((one for one in wanted if one in stem), key=len)
    near = inside[-1:] or difflib.get_close_matches(stem, wanted, 1)
    return wanted[near[0]] if near else ""


def _of_folder(path: Path, wanted: list[str]) -> str:
    for count, (place, _, files) in enumerate(os.walk(path)):
        inside = sorted(set(files) & set(wanted))
        if inside:
            where = shown(os.path.relpath(place, path.parent))
            return f"The folder {shown(path.name)} was not looked into: {where} holds {', '.join(inside)}. Move them up and run this again."
        if count > MOST_FOLDERS:
            break
    return f"The folder {shown(path.name)} was not searched, because it holds none of this lab's notebooks."


def in_class(root: Path) -> list[str]:
    """Return the same for entries of submitted/ next to the labs' folders, which belong to no lab's list of
    students."""
    submitted, labs = root / "submitted", _labs(root)
    said = []
    for name in sorted(set(os.listdir(submitted)) - NOISE) if submitted.is_dir() else ():
        place = submitted / name
        if not place.is_dir():
            said.append(
                f"submitted/{shown(name)} is outside every student's folder. Move it to submitted/STUDENT/LAB/."
            )
        elif not place.is_symlink():
            said += [_beside(place, one, labs) for one in sorted(set(os.listdir(place)) - set(labs) - NOISE)]
    return said


def _labs(root: Path) -> list[str]:
    """Return names that a lab's folder may have, in this course and in a surrounding nbgrader course."""
    places = (root / "labs", root / "solutions")
    return sorted({path.name for place in places for path in place.glob("*/")})


def _beside(place: Path, name: str, labs: list[str]) -> str:
    path = f"submitted/{shown(place.name)}/{shown(name)}"
    if not (place / name).is_dir():
        return f"{path} is outside the labs' folders and was not read. Move it into the folder of its lab."
    near = difflib.get_close_matches(name.casefold(), labs, 1, cutoff=0.4)
    meant = f" (is it meant to be {near[0]}?)" if near else ""
    return f"{path} is not a lab of this course and was not read{meant}: rename it and run this again."
