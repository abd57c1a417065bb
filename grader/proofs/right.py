"""Return the right answer of a kernel question, a cell of the tests or of its solution, as the base of wrong
answers."""

import re
from dataclasses import replace
from functools import cache
from pathlib import Path

from grader import questions
from grader.questions import Question

ROOT = Path(__file__).parents[2]
CELL = re.compile(r"^```python answer=(\w+)[^\n]*\n(.*?)^```$", re.M | re.S)


def kernel_questions() -> list[Question]:
    return [question for question in questions.load().values() if question.compiles]


def cell(question_id: str, name: str) -> Path:
    """Return the path of a right answer that a question's folder keeps whole."""
    return questions.folder(question_id) / "answers" / f"{name}.py"


def inward(question: Question, **more) -> Question:
    """Return a question without corners and without cases at an answer's own sizes, for tests that ask nothing of these."""
    more = {"free": {}, "any_scalar": (), "alike": (), "regular": {}, "balanced": ()} | more
    return replace(question, in_corners=None, far="", up_to={}, **more)


@cache
def right(question_id: str) -> str:
    question = questions.find(question_id)
    path = cell(question_id, "right")
    if path.exists():
        source = path.read_text(encoding="utf-8")
    else:
        text = (ROOT / "solutions" / question.notebook_path).with_suffix(".md").read_text(encoding="utf-8")
        source = {name: body for name, body in CELL.findall(text)}[question.name]
    return source


class NoSuchWords(ValueError):
    """An edit of the tables that no longer fits the cell it changes."""


def edited(source: str, edits) -> str:
    for before, after in edits:
        if source.count(before) < 1:
            raise NoSuchWords(
                f"the right answer must hold {before!r}, got a cell without it. Bring the edit up to date"
            )
        source = source.replace(before, after)
    return source
