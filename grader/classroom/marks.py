"""Read the gradebook's content for a lab, student by student, for exports, reports and a student's own page."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from grader.classroom import entry_stamps, gradebooks, late
from grader.classroom.open_safely import TIME
from grader.classroom.points import Points


@dataclass(frozen=True)
class Mark:
    """One graded cell of one student."""

    notebook: str
    cell: str
    points: float
    of: float
    bonus: float  # part of points, on top of `of`
    waits: bool  # a person has to look at it
    checked: bool  # judged by the grader, while a person grades the others


@dataclass(frozen=True)
class Standing:
    """Holds the gradebook's data for a student in one lab."""

    student: str
    first_name: str = ""
    last_name: str = ""
    email: str = ""
    entered: bool = False  # the gradebook holds a submission
    handed_in_at: str = ""
    penalty: float = 0.0
    late_s: float = 0.0
    of: float = 0.0
    marks: list[Mark] = field(default_factory=list)

    @property
    def raw(self) -> float:
        return sum(mark.points for mark in self.marks)

    @property
    def total(self) -> Points:
        return Points(self.raw, self.of, self.bonus, self.penalty, self.late_s)

    @property
    def points(self) -> float:
        return self.total.total

    @property
    def bonus(self) -> float:
        return sum(mark.bonus for mark in self.marks)

    @property
    def waiting(self) -> list[str]:
        return sorted(f"{mark.notebook}: {mark.cell}" for mark in self.marks if mark.waits)


@contextmanager
def opened(root: Path):
    """Return the gradebook. ValueError says in a sentence that there is none, or none that can be read."""
    from sqlalchemy.exc import NoSuchModuleError, SQLAlchemyError

    url = gradebooks.address(root)
    file = Path(url.removeprefix("sqlite:///"))
    if url.startswith("sqlite:///") and not file.exists():
        raise ValueError("gradebook must be there, got none. Run python -m grader class LAB first")
    try:
        with gradebooks.opened(root) as gradebook:
            yield gradebook
    except (SQLAlchemyError, NoSuchModuleError) as error:
        why = str(getattr(error, "orig", None) or error).strip().splitlines()[0]
        raise ValueError(
            f"gradebook must be one that can be read, got {why!r}. Try again when no other program uses the gradebook"
        ) from None


def standings(root: Path, lab: str) -> list[Standing]:
    """Every student that the gradebook knows, in the order of their names."""
    from nbgrader.api import MissingEntry

    with opened(root) as gradebook:
        try:
            assignment = gradebook.find_assignment(lab)
        except MissingEntry:
            known = ", ".join(sorted(one.name for one in gradebook.assignments)) or "none"
            raise ValueError(
                f"lab must be one that the gradebook knows ({known}), got {lab!r}. "
                "Run python -m grader class LAB first"
            ) from None
        submissions = {one.student.id: one for one in assignment.submissions}
        return [
            _standing(student, submissions.get(student.id), float(assignment.max_score))
            for student in sorted(gradebook.students, key=lambda one: one.id)
        ]


def _standing(student, submission, of: float) -> Standing:
    names = {key: getattr(student, key) or "" for key in ("first_name", "last_name", "email")}
    if submission is None:
        return Standing(student.id, **names, of=of)
    return Standing(
        student.id,
        **names,
        entered=True,
        handed_in_at=str(submission.timestamp or ""),
        penalty=float(submission.late_submission_penalty or 0.0),
        late_s=float(submission.total_seconds_late or 0.0),
        of=of,
        marks=list(_marks(submission)),
    )


def _marks(submission) -> Iterator[Mark]:
    for notebook in sorted(submission.notebooks, key=lambda one: one.name):
        for grade in notebook.grades:
            yield Mark(
                notebook.name,
                grade.name,
                float(grade.score),
                float(grade.max_score),
                float(grade.extra_credit or 0.0),
                bool(grade.needs_manual_grade),
                grade.name.startswith("check_"),
            )


NO_NOTEBOOK = "handed in, and none of the lab's notebooks is there"
OUTDATED = "lateness has changed since the class command worked it out"


def not_judged(root: Path, lab: str, found: list[Standing]) -> dict[str, str]:
    """Return students whose newest hand-in or lateness isn't in the gradebook yet, with the evidence."""
    graded, known = {one.student for one in found if one.entered}, entry_stamps.read(root, lab)
    said = {}
    for folder in sorted((root / "submitted").glob(f"*/{lab}")):
        student = folder.parent.name
        if student not in graded:
            there = any((folder / path.name).exists() for path in (root / "labs" / lab).glob("*.ipynb"))
            said[student] = "handed in and not judged yet" if there else NO_NOTEBOOK
        elif _newer(folder, root / "autograded" / student / lab, known.get(student)):
            said[student] = "handed in again since it was judged"
    there = [one for one in sorted(graded - set(said)) if (root / "submitted" / one / lab).is_dir()]
    return said | dict.fromkeys(late.outdated(root, lab, there), OUTDATED)


def _newer(folder: Path, copy: Path, known: entry_stamps.Entry | None) -> bool:
    if _time(folder) != _time(copy):
        return True
    return bool(known and known.files) and known.files != entry_stamps.files_in(folder)


def _time(folder: Path) -> str:
    try:
        return (folder / TIME).read_text(encoding="utf-8", errors="replace").strip()[:100]
    except OSError:
        return ""
