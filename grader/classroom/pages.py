"""Pages that people read of a submission, feedback and formgrader's: pictures inside them, tables with room, no total before its time."""

import base64
import re
from pathlib import Path

from jinja2 import pass_context
from nbconvert.filters.markdown_mistune import IPythonRenderer, MarkdownWithMath
from nbgrader.preprocessors import GetGrades

IMAGE = re.compile(r'(<img\b[^>]*?\bsrc=")([^":]+)(")')
KINDS = {".svg": "image/svg+xml", ".png": "image/png"}
TABLE = '<table class="table table-condensed" style="width:auto">'
ROOMS = ("course", "labs")  # whose pictures a page may hold


@pass_context
def markdown(context, source: str) -> str:
    """The template's filter for prose, in place of nbconvert's."""
    path = context.get("resources", {}).get("metadata", {}).get("path", "")
    attachments = context.get("cell", {}).get("attachments", {})
    html = MarkdownWithMath(renderer=IPythonRenderer(escape=False, attachments=attachments)).render(source)
    place = Path(path).absolute()
    return with_pictures(html.replace("<table>", TABLE), place.parents[2], place.name)


def with_pictures(html: str, root: Path, lab: str) -> str:
    """Links to the course's pictures, as a notebook in labs/LAB has them, with the pictures in their place."""

    def embedded(match: re.Match) -> str:
        data = picture(root, lab, match[2])
        return f"{match[1]}{data}{match[3]}" if data else match[0]

    return IMAGE.sub(embedded, html)


def picture(root: Path, lab: str, link: str) -> str:
    path = (root / "labs" / lab / link).resolve()
    allowed = path.suffix in KINDS and any(path.is_relative_to((root / room).resolve()) for room in ROOMS)
    if not allowed or not path.is_file():
        return ""
    return f"data:{KINDS[path.suffix]};base64,{base64.b64encode(path.read_bytes()).decode()}"


class Grades(GetGrades):
    """nbgrader's, and at the head of the page what keeps its score from being final, and how much of it is bonus."""

    def preprocess(self, nb, resources):
        nb, resources = super().preprocess(nb, resources)
        place = resources["nbgrader"]
        with self.gradebook:
            found = self.gradebook.find_submission_notebook(
                place["notebook"], place["assignment"], place["student"]
            )
            waiting = sum(bool(grade.needs_manual_grade) for grade in found.grades)
            bonus = sum(grade.extra_credit or 0.0 for grade in found.grades)
        place["notebook"] += said(waiting, bonus)
        return nb, resources


def said(waiting: int, bonus: float) -> str:
    words = ", not final: 1 answer waits for a person" if waiting == 1 else ""
    if waiting > 1:
        words = f", not final: {waiting} answers wait for a person"
    return words + (f", {bonus:g} points of bonus in the score" if bonus else "")
