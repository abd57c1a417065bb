"""<!-- judged=tiled_gemm --> in a text becomes the table of what is judged there, as the question itself says it."""

import re

MARK = re.compile(r"^<!-- judged=(\w+) -->$", re.M)
TABLE = re.compile(r"^\| part \| (?:bonus )?points \| asks \|\n(?:\|.*\n)+", re.M)


class Unknown(Exception):
    """A mark leads to no table; the message says why."""


def table(topic: str, name: str) -> str:
    """Return the table of a question's parts, their points and what each asks."""
    from grader.questions import judging, load

    question = load().get(f"{topic}.{name}")
    if question is None:
        raise Unknown(f"judged must name a question of {topic}, got {name!r}")
    if silent := [part.name for part in question.parts if not part.asks]:
        raise Unknown(f"judged={name}: its {' and '.join(silent)} must say what it asks; see Part.asks")
    return judging.table(question)
