"""Read answers of earlier terms from their folders of submissions, to compare with, never to grade or change."""

from collections.abc import Callable, Iterator
from pathlib import Path

import nbformat

from grader.classroom.exporter import fill
from grader.classroom.report.alike import Written


def students(folder: Path, lab: str) -> list[Path]:
    """Return a term's folders of the students who handed in this lab. `folder` is the term's course or its
    submitted/."""
    place = folder / "submitted" if (folder / "submitted").is_dir() else folder
    found = sorted(path for path in place.glob("*/") if (path / lab).is_dir())
    if not found:
        raise ValueError(
            f"--earlier must be a folder with STUDENT/{lab} in it, got {folder}. Name a term's submitted/"
        )
    return found


def written(
    folder: Path, lab: str, labs: Path, sources: Callable
) -> Iterator[tuple[tuple[str, str], Written]]:
    """((notebook, cell), answer) of all who handed in this lab in an earlier term.

    `labs` is this term's lab, whose cells are looked for.
    """
    for student in students(folder, lab):
        for path in sorted(labs.glob("*.ipynb")):
            handed_in = student / lab / path.name
            if handed_in.exists():
                notebook, _ = fill(nbformat.read(path, as_version=4), handed_in)
                for cell, source, kind in sources([notebook]):
                    yield cell, Written(student.name, source, kind, term=_term(folder))


def _term(folder: Path) -> str:
    """Return the folder's name, or the name of the course that contains the folder."""
    whole = folder.absolute()
    return whole.parent.name if whole.name == "submitted" else whole.name
