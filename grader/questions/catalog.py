"""Every graded question by its id, as the topics' folders hold them."""

import difflib
import importlib
import pkgutil
from functools import cache

from grader.questions.model import Question, shelf


@cache
def load() -> dict[str, Question]:
    """In the order of the shelf."""
    import grader.topics

    slugs = [
        m.name
        for m in pkgutil.iter_modules(grader.topics.__path__)
        if not m.name.startswith("_") and m.name != "tests"
    ]
    found = {}
    for slug in sorted(slugs, key=shelf):
        for question in importlib.import_module(f"grader.topics.{slug}.questions").QUESTIONS:
            found[question.id] = question
    return found


def find(question_id: str) -> Question:
    questions = load()
    if question_id not in questions:
        near = difflib.get_close_matches(question_id, questions, 1)
        hint = f"did you mean {near[0]}?" if near else "`python -m grader questions` lists them"
        raise ValueError(f"question must be one of the course's questions, got {question_id!r}; {hint}")
    return questions[question_id]
