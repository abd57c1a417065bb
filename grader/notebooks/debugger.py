"""<!-- debugger=forward --> in a text becomes the paragraph on tilescope, the same in each lab with kernels."""

import re

MARK = re.compile(r"^<!-- debugger=(\w+) -->$", re.M)
OPENING = "**To walk through your kernel**"
PARAGRAPH = """\
{OPENING}, type `_.step()` in the cell after a check that failed. It opens tilescope, the course's
debugger, on the case that failed, at the program and the line to blame. Go forward and back line by line, and look at every
block's shape, type, values and addresses. A hidden case stays hidden, and you see another one of its kind. Two lines open a
case that you choose, right or wrong: `tried = {run}`, then `tilescope.show(tried)`."""


class Unknown(Exception):
    """A mark leads to no question. The message says why."""


def paragraph(topic: str, name: str) -> str:
    """Return what a lab says about tilescope, with a question's own run()."""
    from grader.questions import load

    known = load()
    question = known.get(f"{topic}.{name}")
    if question is None or question.kind != "kernel":
        raise Unknown(f"debugger must name a question of {topic} that asks for a kernel, got {name!r}")
    alone = sum(other.entry == question.entry for other in known.values()) == 1
    run = f"run({question.entry}, 0)" if alone else f'run({question.entry}, 0, question="{question.id}")'
    return PARAGRAPH.format(OPENING=OPENING, run=run)


def without(words: str) -> str:
    """Return a text without that paragraph, for a page that has no cell to type into."""
    return "\n\n".join(part for part in words.split("\n\n") if not part.startswith(OPENING))
