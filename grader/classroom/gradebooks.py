"""Drive nbgrader without its command line: its configuration, the gradebook's knowledge of a lab, one student at a
time."""

import logging
import os
import tempfile
import warnings
from collections.abc import Callable
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from types import SimpleNamespace

import nbformat

from grader.classroom import changed_lab, storage_errors
from grader.classroom.atomic_file import PLACE

ROOT = Path(__file__).parents[2]
CONFIG = "nbgrader_config.py"
COPY = "gradebook_copy.db"
INSTALL_DRIVER = ".venv/bin/python -m pip install -e '.[postgresql]'"  # in the course's folder


def settings(root: Path, lab: str, student: str = "*"):
    """The course's nbgrader_config.py, for one lab under `root`."""
    from traitlets.config import Config
    from traitlets.config.loader import PyFileConfigLoader

    place = root if (root / CONFIG).exists() else ROOT
    config = Config(PyFileConfigLoader(CONFIG, path=str(place)).load_config())
    config.CourseDirectory.root = str(root)
    config.CourseDirectory.assignment_id = lab
    config.CourseDirectory.student_id = student
    return config


@contextmanager
def quiet():
    """nbgrader's libraries warn of what its users can't change."""
    engine_of = _quicker()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        for engine in engine_of.values():
            engine.dispose()  # a gradebook that was damaged when it was opened is read again


@cache
def _quicker() -> dict:
    """Speed up nbgrader, which opens the gradebook ten times a student and compiles its queries each time, a third of
    all entering.

    For a new gradebook it also starts a program, 3 s, to ask for the newest of the files in its own folder.
    """
    from alembic.script import ScriptDirectory
    from nbgrader import api, dbutil

    engines, create = {}, api.create_engine

    def engine_of(url, **more):
        if url not in engines:
            engines[url] = create(url, **more)
        return engines[url]

    api.create_engine = engine_of
    api.get_alembic_version = lambda: ScriptDirectory(dbutil.ALEMBIC_DIR).get_current_head()
    return engines


def course(config, log):
    from nbgrader.coursedir import CourseDirectory

    return CourseDirectory(config=config, log=log)


def quiet_course(root: Path, lab: str = "any"):
    """nbgrader's view of the course, for what is the same whatever the lab."""
    return course(settings(root, lab), logging.Logger("quiet"))


def address(root: Path) -> str:
    """Return the gradebook's address in SQLAlchemy's form."""
    return quiet_course(root).db_url


@contextmanager
def opened(root: Path, lab: str = "any"):
    """The course's gradebook, for one piece of work."""
    coursedir = quiet_course(root, lab)
    with at(coursedir.db_url, coursedir.course_id) as gradebook:
        yield gradebook


@contextmanager
def at(address: str, course_id: str = "tile-by-tile"):
    """Open a gradebook by its address. A missing driver raises ValueError, which says what to install."""
    from nbgrader.api import Gradebook

    with quiet():
        try:
            gradebook = Gradebook(address, course_id)
        except ModuleNotFoundError as error:
            raise ValueError(
                f"gradebook must have its driver installed, got no {error.name}. Install it with {INSTALL_DRIVER}"
            ) from None
        with gradebook:
            yield gradebook


def copy_aside(root: Path) -> None:
    """Keep a copy of a gradebook that is a whole file, to go back to if it is ever damaged."""
    import sqlite3
    from contextlib import closing

    from sqlalchemy.engine import make_url

    url = make_url(address(root))
    if url.get_backend_name() != "sqlite":
        return
    new = root / PLACE / f".{COPY}"
    try:
        with closing(sqlite3.connect(url.database)) as book, closing(sqlite3.connect(new)) as copied:
            if book.execute("PRAGMA quick_check").fetchone() != ("ok",):
                raise storage_errors.CannotKeep(storage_errors.plain("database disk image is malformed"))
            book.backup(copied)
    except sqlite3.DatabaseError as error:
        raise storage_errors.CannotKeep(storage_errors.said(error)) from None
    os.replace(new, root / PLACE / COPY)


class Heard(logging.Handler):
    """Keeps the last complaint for a one-line message. A complaint that we have a sentence for counts more than any
    later one."""

    def __init__(self):
        super().__init__(logging.ERROR)
        self.said = ""

    def emit(self, record: logging.LogRecord) -> None:
        if storage_errors.ends_the_run(self.said):
            return
        if sentence := storage_errors.plain(record.getMessage()):
            self.said = sentence
            return
        lines = record.getMessage().strip().splitlines()
        if lines and "There was an error processing" not in lines[0] and "see the" not in lines[-1]:
            self.said = lines[-1][:300]


def logger(path: Path | None) -> tuple[logging.Logger, Heard]:
    log, heard = logging.Logger("nbgrader.class", logging.INFO), Heard()
    log.addHandler(heard)
    if path is not None:
        path.parent.mkdir(parents=True, exist_ok=True)
        file = logging.FileHandler(path, encoding="utf-8")
        file.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
        log.addHandler(file)
    return log, heard


def cells_of(notebook) -> dict[str, float]:
    """Graded cells of a notebook with their points."""
    marks = [cell.metadata.get("nbgrader", {}) for cell in notebook.cells]
    return {m["grade_id"]: float(m["points"]) for m in marks if m.get("grade") or m.get("task")}


def notebooks(root: Path, lab: str, config) -> dict[str, Path]:
    """The released notebooks of a lab by name."""
    folder = Path(
        course(config, logging.Logger("quiet")).format_path(
            config.CourseDirectory.release_directory, ".", lab
        )
    )
    return {path.stem: path for path in sorted(folder.glob("*.ipynb"))}


def known(gradebook, lab: str) -> dict[str, dict[str, float]]:
    """Return the gradebook's content for a lab: notebook -> graded cell -> points."""
    from nbgrader.api import MissingEntry

    try:
        found = gradebook.find_assignment(lab).notebooks
    except MissingEntry:
        return {}
    return {n.name: {c.name: float(c.max_score) for c in [*n.grade_cells, *n.task_cells]} for n in found}


def released(root: Path, lab: str) -> dict[str, dict[str, float]]:
    """Read from labs/ the content that a gradebook should hold for a lab: notebook -> graded cell -> points."""
    found = notebooks(root, lab, settings(root, lab, "."))
    return {name: cells_of(nbformat.read(path, as_version=4)) for name, path in found.items()}


def register(root: Path, lab: str, lost: Callable = lambda root, lab, wanted: []) -> str:
    """Enter the released lab into the gradebook unless the lab is already there. Return the reason if the entry fails.

    `lost` names data that has no counterpart in a changed lab.
    """
    config = settings(root, lab, ".")
    wanted = released(root, lab)
    with opened(root, lab) as gradebook:
        if known(gradebook, lab) == wanted:
            return ""
    said = _enter(config, *logger(None))
    with opened(root, lab) as gradebook:
        held = known(gradebook, lab)
    if held == wanted:
        return ""
    return changed_lab.sentence(lab, held, wanted, said, lost(root, lab, wanted))


def _enter(config, log, heard: Heard) -> str:
    """Run nbgrader's own generate_assignment and throw its labs away, because the course builds its own."""
    from nbgrader.converters import GenerateAssignment, NbGraderException

    with tempfile.TemporaryDirectory(prefix="labs_") as folder, quiet():
        config.CourseDirectory.release_directory = folder
        config.GenerateAssignment.force = True
        converter = GenerateAssignment(coursedir=course(config, log), config=config, log=log)
        try:
            converter.start()
        except NbGraderException as error:
            return heard.said or str(error)
    return ""


def autograde(root: Path, lab: str, student: str, mode: str, log, heard: Heard) -> str:
    """Put one student through nbgrader's autograde. Return what went wrong, or nothing."""
    from nbgrader.converters import Autograde

    config = settings(root, lab, student)
    config.Autograde.force = True
    config.Judge.mode = mode
    heard.said = ""
    with quiet():
        try:
            Autograde(coursedir=course(config, log), config=config, log=log).start()
        except Exception as error:  # one student's trouble, whatever it is
            return heard.said or storage_errors.said(error)
    return ""


def holds(root: Path, lab: str, student: str) -> bool:
    """Return whether the gradebook has a submission of this student."""
    from nbgrader.api import MissingEntry

    with opened(root, lab) as gradebook:
        try:
            gradebook.find_submission(lab, student)
        except MissingEntry:
            return False
    return True


def grades(root: Path, lab: str, student: str) -> list[tuple]:
    """(notebook, grade) for every graded cell of a student, as the gradebook holds them."""
    with opened(root, lab) as gradebook:
        return _grades(gradebook.find_submission(lab, student))


def entry(root: Path, lab: str, student: str) -> dict | None:
    """Return the gradebook's content for a student's work as plain data, or None."""
    from nbgrader.api import MissingEntry

    with opened(root, lab) as gradebook:
        try:
            found = _grades(gradebook.find_submission(lab, student))
        except MissingEntry:
            return None
    points, of = (sum(getattr(g, name) for _, g in found) for name in ("score", "max_score"))
    bonus = sum(g.extra_credit or 0.0 for _, g in found)
    return {
        "points": points,
        "of": of,
        "bonus": bonus,
        "scores": {f"{notebook}: {g.name}": g.score for notebook, g in found},
    }


def _grades(submission) -> list[tuple]:
    return [
        (
            notebook.name,
            SimpleNamespace(
                name=g.name,
                score=float(g.score),
                max_score=float(g.max_score),
                extra_credit=g.extra_credit,
                needs_manual_grade=g.needs_manual_grade,
            ),
        )
        for notebook in submission.notebooks
        for g in notebook.grades
    ]
