"""Check that every counted quantity of a kernel question has a bound, and that its lab shows the table of bounds."""

import re
from pathlib import Path

BY_HAND = re.compile(r"^\| *part *\|", re.M)


def check(root: Path, questions: dict | None = None) -> list[str]:
    """`questions` is the table by id, by default the project's own."""
    if not (root / "solutions").exists():
        return []
    from grader.questions.account import unbounded
    from grader.questions.reach import unreached

    if questions is None:
        from grader.questions import load

        questions = load()
    said = []
    for name, question in questions.items():
        if question.kind not in ("kernel", "ranks"):
            continue
        place = f"solutions/{question.notebook_path.removesuffix('.ipynb')}.md"
        text = (root / place).read_text(encoding="utf-8") if (root / place).exists() else ""
        if text and f"<!-- judged={question.name} -->" not in text:
            said.append(
                f"{place}: the table of {name}'s parts must come from <!-- judged={question.name} -->"
            )
        if question.kind == "kernel":
            said += [f"{name}: {open_} must have a bound" for open_ in unbounded(question)]
            said += [f"{name}: {open_}" for open_ in unreached(question)]
    for path in sorted((root / "solutions").glob("*/*.md")):
        if BY_HAND.search(path.read_text(encoding="utf-8")):
            said.append(
                f"{path.relative_to(root).as_posix()}: a table of parts must come from <!-- judged=NAME -->"
            )
    return said
