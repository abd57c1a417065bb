"""Replace <!-- judged=tiled_gemm --> in a text by the table of the question's parts, which the question itself
gives."""

import re

MARK = re.compile(r"^<!-- judged=(\w+) -->$", re.M)
TABLE = re.compile(r"^\| part \| (?:bonus )?points \| asks \|\n(?:\|.*\n)+", re.M)


class Unknown(Exception):
    """A mark leads to no table. The message says why."""


def table(topic: str, name: str) -> str:
    """Return the table of a question's parts, with their points and their wording."""
    from grader.questions import criteria_text, load

    question = load().get(f"{topic}.{name}")
    if question is None:
        raise Unknown(f"judged must name a question of {topic}, got {name!r}")
    if silent := [part.name for part in question.parts if not part.asks]:
        raise Unknown(f"judged={name}: its {' and '.join(silent)} must say what it asks. See Part.asks")
    return "\n\n".join(filter(None, (criteria_text.table(question), criteria_text.limits(question))))
