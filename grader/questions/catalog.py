"""List every graded question by its id, from the topics' folders."""

import difflib
import importlib
import pkgutil
from functools import cache
from pathlib import Path
from types import ModuleType

from grader.questions.model import ROOT, Question, shelf


@cache
def load() -> dict[str, Question]:
    """Load the questions in the order of the shelf."""
    import grader.topics

    slugs = [
        m.name
        for m in pkgutil.iter_modules(grader.topics.__path__)
        if not m.name.startswith("_") and m.name != "tests"
    ]
    found = {}
    for slug in sorted(slugs, key=shelf):
        for name in importlib.import_module(f"grader.topics.{slug}.lab").ORDER:
            found[f"{slug}.{name}"] = part_of(f"{slug}.{name}", "question").QUESTION
    return found


def part_of(question_id: str, file: str) -> ModuleType:
    """Return one of the modules of a question's folder: question, cases, mistakes or answers.forms."""
    return importlib.import_module(f"grader.topics.{question_id}.{file}")


def folder(question_id: str) -> Path:
    """Return the folder of a question."""
    return ROOT.joinpath("grader", "topics", *question_id.split("."))


def find(question_id: str) -> Question:
    questions = load()
    if question_id not in questions:
        near = difflib.get_close_matches(question_id, questions, 1)
        hint = f"did you mean {near[0]}?" if near else "`python -m grader questions` lists them"
        raise ValueError(f"question must be one of the course's questions, got {question_id!r}; {hint}")
    return questions[question_id]
