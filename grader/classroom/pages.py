"""Make a submission's pages for feedback and for formgrader, with embedded pictures, room for tables, and no total
before its time."""

import base64
import re
from pathlib import Path

from jinja2 import pass_context
from nbconvert.filters.markdown_mistune import IPythonRenderer, MarkdownWithMath
from nbgrader.preprocessors import GetGrades

from grader.classroom.points import Points, number

IMAGE = re.compile(r'<img\b([^>]*?\bsrc=")([^":]+)(")')
PLAIN = '<img style="border:0"'  # formgrader's style sheet frames every other picture in red
KINDS = {".svg": "image/svg+xml", ".png": "image/png"}
TABLE = '<table class="table table-condensed" style="width:auto">'
ROOMS = ("course", "labs")  # whose pictures a page may hold


@pass_context
def markdown(context, source: str) -> str:
    """Filter a template's prose instead of nbconvert's filter."""
    path = context.get("resources", {}).get("metadata", {}).get("path", "")
    attachments = context.get("cell", {}).get("attachments", {})
    html = MarkdownWithMath(renderer=IPythonRenderer(escape=False, attachments=attachments)).render(source)
    place = Path(path).absolute()
    return with_pictures(html.replace("<table>", TABLE), place.parents[2], place.name)


def with_pictures(html: str, root: Path, lab: str) -> str:
    """Replace links to the course's pictures, as a notebook in labs/LAB has them, by the pictures themselves."""

    def embedded(match: re.Match) -> str:
        data = picture(root, lab, match[2])
        return f"{PLAIN}{match[1]}{data}{match[3]}" if data else match[0]

    return IMAGE.sub(embedded, html)


def picture(root: Path, lab: str, link: str) -> str:
    path = (root / "labs" / lab / link).resolve()
    allowed = path.suffix in KINDS and any(path.is_relative_to((root / room).resolve()) for room in ROOMS)
    if not allowed or not path.is_file():
        return ""
    return f"data:{KINDS[path.suffix]};base64,{base64.b64encode(path.read_bytes()).decode()}"


class Grades(GetGrades):
    """nbgrader's, with a heading that says points as rows do, and what keeps them from being final."""

    def preprocess(self, nb, resources):
        nb, resources = super().preprocess(nb, resources)
        place = resources["nbgrader"]
        with self.gradebook:
            found = self.gradebook.find_submission_notebook(
                place["notebook"], place["assignment"], place["student"]
            )
            waiting = sum(bool(grade.needs_manual_grade) for grade in found.grades)
            points = Points(
                float(found.score),
                float(found.max_score),
                sum(grade.extra_credit or 0.0 for grade in found.grades),
                float(found.late_submission_penalty or 0.0),
                float(found.assignment.total_seconds_late),
            )
        place["notebook"] += f": {points}{said(waiting)}"
        return nb, resources


def said(waiting: int) -> str:
    if not waiting:
        return ", final"
    answers = "1 answer waits" if waiting == 1 else f"{waiting} answers wait"
    return f", not final: {answers} for a person"


NUMBERS = r"Score: (-?\d+\.\d+)(?: / (\d+\.\d+))?"
HEADING = re.compile(rf"(<h4>[^<]*) \({NUMBERS}\)(</h4>)")
IN_A_LIST = re.compile(rf"(</a>|late submission penalty) \({NUMBERS}\)(</li>)", re.I)
OF_A_CELL = re.compile(rf'(<span class="pull-right">\s*){NUMBERS}( <a href="#top">)')


def in_one_form(page: str) -> str:
    """Rewrite nbgrader's 'Score: 2.0 / 3.0' in a feedback page as everywhere else, 2 of 3."""
    page = HEADING.sub(r"\1\4", page)
    page = IN_A_LIST.sub(lambda m: f"{m[1]} ({_of(m[2], m[3])}){m[4]}", page)
    return OF_A_CELL.sub(lambda m: f"{m[1]}{_of(m[2], m[3])}{m[4]}", page)


def _of(points: str, most: str | None) -> str:
    return f"{number(float(points))} of {number(float(most))}" if most else number(float(points))
