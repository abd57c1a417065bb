"""Make feedback pages that agree with the gradebook. Each bears a fingerprint of the grades that it was made from.

nbgrader skips a student who has pages already, whatever happened to the grades since. Here pages whose fingerprint
is old are removed before nbgrader looks, and the class command makes them again."""

import hashlib
import json
import re
import shutil
from pathlib import Path

from nbconvert.exporters import HTMLExporter

from grader.classroom import gradebooks, late, pages

BEARS = re.compile(rb"<!-- grades ([0-9a-f]{64}) -->\s*$")
TAIL = 200  # bytes at the end of a page, in which its fingerprint is


class FeedbackExporter(HTMLExporter):
    """Writes nbconvert's pages, each with its fingerprint. Old pages go before nbgrader decides whom to skip."""

    def __init__(self, **more):
        super().__init__(**more)
        coursedir = getattr(self.parent, "coursedir", None)
        if coursedir is not None:
            root, lab = Path(coursedir.root), coursedir.assignment_id
            with_pages = [Path(path).parent.name for path in getattr(self.parent, "assignments", ())]
            late.settle(root, lab, with_pages)  # an extension counts immediately
            for student in stale(root, lab, with_pages):
                shutil.rmtree(_folder(root, lab, student))

    def from_filename(self, filename, resources=None, **more):
        page, resources = super().from_filename(filename, resources, **more)
        place = resources["nbgrader"]
        path = Path(filename)
        with gradebooks.opened(Path(self.parent.coursedir.root), place["assignment"]) as gradebook:
            submission = gradebook.find_submission(place["assignment"], place["student"])
            return f"{pages.in_one_form(page)}\n<!-- grades {fingerprint(submission, path)} -->\n", resources


def fingerprint(submission, autograded: Path) -> str:
    """Identify all content of a page, from the graded copy and the gradebook's points, comments and lateness."""
    (notebook,) = [one for one in submission.notebooks if one.name == autograded.stem]
    shown = {
        "copy": hashlib.sha256(autograded.read_bytes()).hexdigest(),
        "grades": sorted(
            (g.name, g.score, g.max_score, g.extra_credit, g.needs_manual_grade) for g in notebook.grades
        ),
        "comments": sorted((c.name, c.comment or "") for c in notebook.comments),
        "late": [notebook.late_submission_penalty, submission.total_seconds_late],
    }
    return hashlib.sha256(json.dumps(shown, default=str).encode()).hexdigest()


def _folder(root: Path, lab: str, student: str) -> Path:
    return root / "feedback" / student / lab


def stale(root: Path, lab: str, students: list[str]) -> list[str]:
    """Return the students whose pages exist and differ from the gradebook's present state."""
    from nbgrader.api import MissingEntry

    found = []
    with gradebooks.opened(root, lab) as gradebook:
        for student in (one for one in students if _folder(root, lab, one).is_dir()):
            try:
                submission = gradebook.find_submission(lab, student)
            except MissingEntry:
                continue
            copies = sorted((root / "autograded" / student / lab).glob("*.ipynb"))
            there = [_folder(root, lab, student) / f"{path.stem}.html" for path in copies]
            wanted = [fingerprint(submission, path) for path in copies]
            if [_borne(page) for page in there] != wanted:
                found.append(student)
    return found


def _borne(page: Path) -> str:
    """Return the fingerprint that a page bears, or nothing for a missing page or one of an earlier version."""
    try:
        tail = page.read_bytes()[-TAIL:]
    except OSError:
        return ""
    match = BEARS.search(tail)
    return match[1].decode() if match else ""


def renew(root: Path, lab: str, students: list[str]) -> list[str]:
    """Remake the outdated pages among these students' pages. Return the students whose pages changed."""
    from nbgrader.converters import GenerateFeedback

    old = stale(root, lab, students)
    for student in old:
        config = gradebooks.settings(root, lab, student)
        log, _ = gradebooks.logger(None)
        with gradebooks.quiet():
            GenerateFeedback(coursedir=gradebooks.course(config, log), config=config, log=log).start()
    return old
