"""What came in for a lab: whose it is, the answers in it, and what of it is not looked at, in sentences."""

import difflib
import os
import re
from dataclasses import dataclass
from pathlib import Path

import nbformat

from grader import questions
from grader.classroom import set_aside
from grader.classroom.exporter import NOT_READ, fill
from grader.classroom.preprocessors import answers_to_checks
from grader.classroom.term import Term
from grader.judge.report import visible

MOST_NAMED = 5  # of the files that are not looked at
STUDENT = re.compile(r"\w[^/*?\[\]\\]*")  # what nbgrader can find again, and a table of grades may hold


@dataclass(frozen=True)
class HandedIn:
    """A student's notebooks of the lab, with the answers in place."""

    student: str
    notebooks: list
    said: list[str]

    def answers(self) -> list[tuple[str, str]]:
        """(question, source) of every answer that can be judged."""
        table = questions.load()
        pairs = [
            p for nb in self.notebooks if NOT_READ not in nb.metadata for p in answers_to_checks(nb).values()
        ]
        return [(name, source) for name, source in pairs if source is not None and name in table]


def students(round_: Term) -> list[str]:
    """Whoever has handed in something for this lab."""
    folder = round_.root / "submitted"
    names = sorted(os.listdir(folder)) if folder.is_dir() else []
    return [name for name in names if os.path.lexists(folder / name / round_.lab)]


def handed_in(round_: Term, student: str) -> HandedIn:
    notebooks, said, folder = [], [], round_.root / "submitted" / student / round_.lab
    wanted = sorted((round_.root / "labs" / round_.lab).glob("*.ipynb"))
    for path in wanted:
        submitted = folder / path.name
        if os.path.lexists(submitted):
            notebook, words = fill(nbformat.read(path, as_version=4), submitted)
            notebooks.append(notebook)
            said += [w if w.startswith(path.name) else f"{path.name}: {w}" for w in words]
        else:
            said.append(f"{path.name} was not handed in.")
    names = [path.name for path in wanted]
    return HandedIn(student, notebooks, said + _others(folder, names))


def _others(folder: Path, wanted: list[str]) -> list[str]:
    """Notebooks under names that the lab does not have; they stay where they are."""
    if folder.is_symlink() or folder.parent.is_symlink() or not folder.is_dir():
        return []
    found = [name for name in os.listdir(folder) if name.lower().endswith(".ipynb") and name.isprintable()]
    odd = set(found) - set(wanted)
    return _few([_other(name, wanted) for name in sorted(odd)])


def _few(sentences: list[str]) -> list[str]:
    more = len(sentences) - MOST_NAMED
    return sentences[:MOST_NAMED] + ([f"The same of {more} files more."] if more > 0 else [])


def _other(name: str, wanted: list[str]) -> str:
    near = difflib.get_close_matches(name.casefold(), wanted, 1)
    meant = f" (is it meant to be {near[0]}?)" if near else ""
    return f"{_shown(name)} is no notebook of this lab and was not read{meant}."


def clear(round_: Term, student: str) -> list[str]:
    """Moves out of nbgrader's way what it should not copy or can't name; a sentence for each."""
    folder = round_.root / "submitted" / student / round_.lab
    names = [] if folder.is_symlink() else set_aside.set_aside(folder)
    return _few([f"{_shown(name)} was set aside: {set_aside.WHY}." for name in sorted(names)])


def _shown(name: str) -> str:
    return visible(name).replace("\n", "\\n").replace("\t", "\\t")[:80]


def cannot_be_entered(round_: Term, one: HandedIn) -> str:
    """Why nbgrader must not get to see this student's folder; nothing if it may."""
    if not STUDENT.fullmatch(one.student) or not one.student.isprintable():
        return (
            "the name of this student's folder holds characters that nbgrader cannot look for; "
            "a letter, digit or underscore comes first, and none of / * ? [ ] \\ or hidden ones after it"
        )
    if (round_.root / "submitted" / one.student).is_symlink():
        return "this student's folder is a link to another place; put the folder itself there"
    if not one.notebooks:
        return "none of the lab's notebooks was handed in"
    return ""
