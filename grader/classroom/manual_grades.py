"""Grades given by hand outlive a new entry, where what a person looked at is still the same."""

from pathlib import Path

import nbformat

from grader.classroom import gradebooks


def graded(root: Path, lab: str, student: str) -> dict[tuple, tuple]:
    """(notebook, cell) -> (text, points given by the grader) of every cell that a person has settled."""
    from nbgrader.api import MissingEntry

    texts = texts_in(root / "autograded" / student / lab)
    if not texts:
        return {}
    with gradebooks.opened(root, lab) as gradebook:
        try:
            notebooks = gradebook.find_submission(lab, student).notebooks
        except MissingEntry:
            return {}
        return {
            (notebook.name, grade.name): (texts.get(notebook.name, {}).get(grade.name), grade.auto_score)
            for notebook in notebooks
            for grade in notebook.grades
            if grade.manual_score is not None and not grade.needs_manual_grade
        }


def keep(root: Path, lab: str, student: str, before: dict[tuple, tuple]) -> None:
    """Takes back nbgrader's wish to look again at cells whose text and points by the grader are as before."""
    if not before:
        return
    texts = texts_in(root / "autograded" / student / lab)
    with gradebooks.opened(root, lab) as gradebook:
        for notebook in gradebook.find_submission(lab, student).notebooks:
            for grade in notebook.grades:
                now = texts.get(notebook.name, {}).get(grade.name), grade.auto_score
                if grade.manual_score is not None and before.get((notebook.name, grade.name)) == now:
                    grade.needs_manual_grade = False
        gradebook.db.commit()


def texts_in(folder: Path) -> dict[str, dict]:
    return {path.stem: _texts(path) for path in sorted(folder.glob("*.ipynb"))}


def _texts(path: Path) -> dict[str, list[str]]:
    """cell -> its text and that of the student's own cells below it, which a task is graded by."""
    found, below = {}, []
    for cell in nbformat.read(path, as_version=4).cells:
        name = cell.metadata.get("nbgrader", {}).get("grade_id")
        below = found.setdefault(name, []) if name else below
        below.append(cell.source)
    return found
