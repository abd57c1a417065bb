"""Find the hand-ins for a lab, each with its student, its answers, and a sentence for everything that is ignored."""

import os
import re
from dataclasses import dataclass, field

import nbformat

from grader import questions
from grader.classroom import entry_stamps, leftovers, set_aside, unpack
from grader.classroom.exporter import NOT_READ, fill
from grader.classroom.grading_round import GradingRound
from grader.classroom.open_safely import STUDENT
from grader.classroom.preprocessors import answers_to_checks

NOTHING = "none of the lab's notebooks was handed in"
MOST_NAMED = 5  # of the files that are not looked at
FEW_CELLS = 2  # of a notebook, each with a sentence of its own
LOST = re.compile(r"(.+): The cell `(.+)` has lost its name")


@dataclass(frozen=True)
class HandedIn:
    """Holds a student's notebooks of the lab, with the answers filled in."""

    student: str
    notebooks: list
    said: list[str]
    unused: list[str]  # files and folders that are not read, and what to do about each
    files: str = ""  # digest of all files, taken before they were read
    unread: dict[str, str] = field(default_factory=dict)  # notebook -> why it can't be read

    def answers(self) -> list[tuple[str, str]]:
        """(question, source) of every answer that can be judged."""
        table = questions.load()
        pairs = [
            p for nb in self.notebooks if NOT_READ not in nb.metadata for p in answers_to_checks(nb).values()
        ]
        return [(name, source) for name, source in pairs if source is not None and name in table]


def students(round_: GradingRound) -> list[str]:
    """Return the students who have handed in something for this lab."""
    folder = round_.root / "submitted"
    names = sorted(os.listdir(folder)) if folder.is_dir() else []
    return [name for name in names if os.path.lexists(folder / name / round_.lab)]


def handed_in(round_: GradingRound, student: str) -> HandedIn:
    notebooks, said, missing, unread = [], [], [], {}
    folder = round_.root / "submitted" / student / round_.lab
    wanted = sorted((round_.root / "labs" / round_.lab).glob("*.ipynb"))
    names = [path.name for path in wanted]
    said += unpack.lone(folder, names)
    files = entry_stamps.files_in(folder)
    said += (renamed := unpack.again_named(folder, names))
    taken = [one.partition(" was taken for ")[0] for one in renamed]
    for path in wanted:
        submitted = folder / path.name
        if os.path.lexists(submitted):
            notebook, words = fill(nbformat.read(path, as_version=4), submitted)
            notebooks.append(notebook)
            if NOT_READ in notebook.metadata:
                unread[path.stem] = notebook.metadata[NOT_READ]
            said += [w if w.startswith(path.name) else f"{path.name}: {w}" for w in words]
        else:
            missing.append(f"{path.name} was not handed in.")
    said += missing if notebooks else []  # otherwise the row says that none was
    return HandedIn(student, notebooks, said, leftovers.in_lab(folder, names + taken), files, unread)


def together(sentences: list[str]) -> list[str]:
    """Say once a notebook, instead of once a cell, that an editor took the cells' names away."""
    lost: dict[str, list[str]] = {}
    for notebook, cell in filter(None, map(_lost, sentences)):
        lost.setdefault(notebook, []).append(cell)
    kept = [one for one in sentences if not (found := _lost(one)) or len(lost[found[0]]) <= FEW_CELLS]
    more = {notebook: cells for notebook, cells in lost.items() if len(cells) > FEW_CELLS}
    return kept + [
        f"{notebook}: {len(cells)} cells have lost their names and were found by function or position: {', '.join(cells)}."
        for notebook, cells in more.items()
    ]


def _lost(sentence: str) -> tuple[str, str] | None:
    found = LOST.match(sentence)
    return (found[1], found[2]) if found else None


def few(sentences: list[str]) -> list[str]:
    more = len(sentences) - MOST_NAMED
    return sentences[:MOST_NAMED] + ([f"The same of {more} files more, each in the log."] if more > 0 else [])


def clear(round_: GradingRound, student: str) -> list[str]:
    """Move away what nbgrader should not copy or can't name. Return a sentence for each."""
    folder = round_.root / "submitted" / student / round_.lab
    names = [] if folder.is_symlink() else set_aside.set_aside(folder)
    return few([f"{leftovers.shown(name)} was set aside: {set_aside.WHY}." for name in sorted(names)])


def cannot_be_entered(round_: GradingRound, one: HandedIn) -> str:
    """Return why nbgrader must not see this student's folder, or nothing if it may."""
    if not STUDENT.fullmatch(one.student) or not one.student.isprintable():
        return (
            "the name of this student's folder holds characters that nbgrader cannot look for. "
            "A letter, digit or underscore comes first, without / * ? [ ] \\ or hidden characters after it"
        )
    if (round_.root / "submitted" / one.student).is_symlink():
        return "this student's folder is a link to another folder. Put the folder itself there"
    if not one.notebooks:
        return NOTHING
    return ""
