"""Show a question's hints one at a time, for learners who write their answer in an editor of their own (python -m
grader hint)."""

import argparse
import sys

from grader import paths, questions
from grader.judge import record

USAGE = "python -m grader hint"


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(
        prog=USAGE, description="Show the next hint of a question. Hints cost nothing."
    )
    parser.add_argument("question")
    parser.add_argument("step", nargs="?", type=int, help="which hint, instead of the next one")
    arguments = parser.parse_args(argv)
    try:
        question = questions.find(arguments.question)
        number = chosen(question, arguments.step)
    except ValueError as error:
        print(f"{USAGE}: {error}", file=sys.stderr)
        return record.WRONG_USAGE
    if not number:
        print("This question has no hints.")
        return 0
    more = (
        ""
        if number == len(question.hints)
        else f"\n(ask again for more, or {USAGE} {question.id} {number + 1})"
    )
    print(f"Hint {number} of {len(question.hints)}: {question.hints[number - 1]}{more}")
    return 0


def chosen(question, step: int | None) -> int:
    """Return the number of the hint to show, and keep it for the next time, or return 0 if there is none."""
    if not question.hints:
        return 0
    if step is not None and not 1 <= step <= len(question.hints):
        raise ValueError(f"step must be from 1 to {len(question.hints)}, got {step}")
    number = step or min(kept(question.id) + 1, len(question.hints))
    keep(question.id, number)
    return number


def kept(question_id: str) -> int:
    """Return the last hint that was shown."""
    try:
        return max(0, int((paths.records() / question_id / "hinted").read_text(encoding="utf-8")))
    except (OSError, ValueError):
        return 0


def keep(question_id: str, number: int) -> None:
    """Note the hint that was shown. If the disk refuses, the learner loses nothing."""
    try:
        folder = paths.records() / question_id
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "hinted").write_text(f"{number}\n", encoding="utf-8")
    except OSError:
        pass
