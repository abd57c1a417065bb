"""Replace <!-- rules=roof --> in a concepts lab by the paragraph on its cells and answers, the same in each of them."""

import re

MARK = re.compile(r"^<!-- rules=(\w+) -->$", re.M)
PARAGRAPH = """\
Run the cells from top to bottom, including the empty ones, because a function exists only once you have run its cell.
Its check says *not started* until you write something into it. Before each function, predict a number and assign it to
the `my_...` variable that follows the question. A wrong guess costs no points. A check runs your cell in a separate
process, on the cases shown here and on hidden ones. If a result is wrong, the check reports it together with the
expected result and says where to look for the mistake. The dtype of a result matters only where the question names one.
An answer can't call functions from other cells and must not change its arguments, but it can use `np` and `math`
without an import. Hints come in three steps and are free. To get one, call `hint` with the question's name, for example
`hint("{question}")`. The [glossary](../../course/glossary.ipynb) explains new terms."""


class Unknown(Exception):
    """A mark leads to no question. The message says why."""


def paragraph(topic: str, name: str) -> str:
    """Return the paragraph, with one of the lab's questions as its example."""
    from grader.questions import load

    question = load().get(f"{topic}.{name}")
    if question is None or question.notebook != "concepts":
        raise Unknown(f"rules must name a question of {topic}'s concepts lab, got {name!r}")
    return PARAGRAPH.format(question=question.id)
