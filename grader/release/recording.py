"""Record a module of numpy questions as the same rows with expected results, without a function that answers them."""

import ast
import copy
from dataclasses import fields

import numpy as np

from grader import questions
from grader.judge.numpy_values import TWINS, twin
from grader.paths import ROOT
from grader.questions import NumpyQuestion, Question, recorded

SETS = 8  # of hidden calls that a learner's check may meet
DRAWN = {"reference", "public", "hidden", "mistakes"}  # the recorded fields of a row
TOP = '''"""{title}

Recorded. The expected results are data, so that no function of this copy answers a question. A class is judged on
newly drawn calls."""

from grader.questions import NumpyQuestion, Part, recorded
{imports}
{row}'''


def numpy_questions() -> dict[str, Question]:
    """Return the folder of each numpy question, as posix -> the question."""
    return {
        questions.folder(question.id).relative_to(ROOT).as_posix(): question
        for question in questions.load().values()
        if question.kind == "numpy"
    }


def module(source: str, question: NumpyQuestion) -> str:
    """Return question.py for a student edition."""
    title = (ast.get_docstring(ast.parse(source)) or "").partition("\n")[0]
    rule = question.agree.__module__ if question.agree else ""
    imports = f"from {rule.rpartition('.')[0]} import {rule.rpartition('.')[2]}\n" if rule else ""
    return TOP.format(title=title, imports=imports, row=_row(question))


def _row(question: NumpyQuestion) -> str:
    kept = {f.name: getattr(question, f.name) for f in fields(question) if f.name not in DRAWN}
    said = "".join(f"    {key}={_written(value)},\n" for key, value in kept.items())
    return f"QUESTION = NumpyQuestion(\n{said}    **recorded.cases(__file__, {question.name!r}),\n)\n"


def _written(value) -> str:
    """Return plain values, and a function by its name in its module."""
    return f"{value.__module__.rpartition('.')[2]}.{value.__name__}" if callable(value) else repr(value)


def record(question: NumpyQuestion) -> dict:
    """Record calls, public and hidden, with the expected result and each mistake's result."""
    calls, places = [], {}

    def number(call) -> int:
        key = recorded.digest(call.args)
        if key not in places:
            places[key] = len(calls)
            calls.append(call)
        return places[key]

    public, hidden = [number(call) for call in question.public], []
    for seed in range(SETS):
        drawn = list(question.hidden(np.random.Generator(np.random.PCG64([seed, 20]))))
        hidden.append([number(call) for call in drawn])
        for call in drawn[:TWINS]:
            if again := twin(question, call):
                number(again)
    return {
        "calls": [[call.args, call.kind] for call in calls],
        "public": public,
        "hidden": hidden,
        "wanted": [question.reference(*copy.deepcopy(call.args)) for call in calls],
        "mistakes": [
            [m.name, m.sentence, [_gives(m.wrong, call.args) for call in calls]]
            for m in question.mistakes
            if m.wrong
        ],
    }


def _gives(wrong, args: tuple):
    """Return a mistake's result, or a special word if it can't be written down."""
    try:
        with np.errstate(all="ignore"):
            found = wrong(*copy.deepcopy(args))
        recorded.pack(found, recorded.Bytes())
        return found
    except Exception:  # a mistake may break in any way, and then can't match an answer
        return recorded.RAISED
