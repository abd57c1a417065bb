"""A lesson as its tests need it: its prose as it is read, and all that its cells compute."""

import re
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from types import SimpleNamespace

from widgets.site.lessons import Lesson, lessons

COURSE = Path(__file__).parents[2] / "course"
LINK = re.compile(r"\[([^\]]*)\]\([^)]*\)")


def lesson(name: str) -> Lesson:
    return next(one for one in lessons(COURSE) if one.name == name)


def words(text: str) -> str:
    """As it is read: links are their words, emphasis is gone, lines are one."""
    return " ".join(LINK.sub(r"\1", text).replace("*", "").split())


def prose(of: Lesson) -> str:
    return words(" ".join(cell.text for cell in of.cells if cell.kind == "markdown"))


def run_cells(of: Lesson) -> SimpleNamespace:
    """Every cell from top to bottom in one namespace; simulators are left out, they have tests of their own."""
    place = {}
    with redirect_stdout(StringIO()):
        for cell in of.cells:
            if cell.kind == "code" and cell.text:
                exec(compile(cell.text, f"a cell of {of.name}", "exec"), place)
    return SimpleNamespace(**place)
