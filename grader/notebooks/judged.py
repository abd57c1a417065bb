"""<!-- judged=tiled_gemm --> in a text becomes the table of what is judged there, as the question itself says it."""

import re
from functools import partial

MARK = re.compile(r"^<!-- judged=(\w+) -->$", re.M)
TABLE = re.compile(r"^\| part \| (?:bonus )?points \| asks \|\n(?:\|.*\n)+", re.M)


def filled(words: str, topic: str) -> tuple[str, list[tuple[int, str]]]:
    """(the text with its tables, [(line, complaint)])."""
    complaints = []
    return MARK.sub(partial(_table, topic, complaints), words), complaints


def _table(topic: str, complaints: list, mark: re.Match) -> str:
    from grader.questions import load
    from grader.questions.judging import table

    line = mark.string.count("\n", 0, mark.start()) + 1
    question = load().get(f"{topic}.{mark[1]}")
    if question is None:
        complaints.append((line, f"judged must name a question of {topic}, got {mark[1]!r}"))
        return mark[0]
    if silent := [part.name for part in question.parts if not part.asks]:
        complaints.append(
            (line, f"judged={mark[1]}: its {' and '.join(silent)} must say what it asks; see Part.asks")
        )
        return mark[0]
    return table(question)


def line_in_source(filled: str, line: int) -> int:
    """A line of the filled text as a line of the text that somebody wrote, where each table is one line."""
    before = "".join(filled.splitlines(keepends=True)[: line - 1])
    return line - sum(found[0].count("\n") - 1 for found in TABLE.finditer(before))
