"""A module of numpy questions -> the same rows without a function that answers them, and what they are compared with."""

import ast
import copy
from dataclasses import fields
from pathlib import Path

import numpy as np

from grader import questions
from grader.judge.calls import TWINS, twin
from grader.questions import NumpyQuestion, Question, recorded

SETS = 8  # of hidden calls that a learner's check may meet
DRAWN = {"reference", "public", "hidden", "mistakes"}  # of a row: what is recorded
TOP = '''"""{title}

As recorded: what is compared with is data, so that no function of this copy answers a question. A class is judged on
calls that are drawn anew."""

from grader.questions import NumpyQuestion, Part, recorded
{imports}
{rows}
QUESTIONS = ({names},)
SHORTCUTS = {{}}
'''


class Mixed(ValueError):
    """A module that holds questions of both kinds, of which one kind must stay and the other must not."""


def modules(root: Path) -> dict[str, dict[str, Question]]:
    """Path of each module with numpy questions -> its questions by the names that they have there."""
    found = {}
    for path in sorted(root.glob("grader/topics/*/*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        made = [
            node for node in tree.body if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call)
        ]
        kinds = {node.targets[0].id: _callee(node) for node in made if isinstance(node.targets[0], ast.Name)}
        rows = {
            name: _id(node) for name, node in zip(kinds, made, strict=False) if kinds[name] == "NumpyQuestion"
        }
        if rows and "KernelQuestion" in kinds.values():
            raise Mixed(
                f"{path.relative_to(root).as_posix()} must hold questions in numpy or kernels, got both; "
                "move those in numpy to a module of their own, which a student edition records"
            )
        if rows:
            found[path.relative_to(root).as_posix()] = {n: questions.find(one) for n, one in rows.items()}
    return found


def _callee(node: ast.Assign) -> str:
    return node.value.func.id if isinstance(node.value.func, ast.Name) else ""


def _id(node: ast.Assign) -> str:
    return next(ast.literal_eval(word.value) for word in node.value.keywords if word.arg == "id")


def module(source: str, rows: dict[str, Question]) -> str:
    """The text of the module as a student edition holds it."""
    title = (ast.get_docstring(ast.parse(source)) or "").partition("\n")[0]
    words = [f'LESSON = "{lesson}"\n' for lesson in [_lesson(source)] if lesson]
    words += [_row(name, question) for name, question in rows.items()]
    rules = sorted({question.agree.__module__ for question in rows.values() if question.agree})
    imports = "".join(f"from {name.rpartition('.')[0]} import {name.rpartition('.')[2]}\n" for name in rules)
    return TOP.format(title=title, imports=imports, rows="\n".join(words), names=", ".join(rows))


def _lesson(source: str) -> str:
    """LESSON, which a topic's other modules ask for."""
    for node in ast.parse(source).body:
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "LESSON":
            return ast.literal_eval(node.value)
    return ""


def _row(name: str, question: NumpyQuestion) -> str:
    kept = {f.name: getattr(question, f.name) for f in fields(question) if f.name not in DRAWN}
    said = "".join(f"    {key}={_written(value)},\n" for key, value in kept.items())
    return f"{name} = NumpyQuestion(\n{said}    **recorded.cases(__file__, {question.name!r}),\n)\n"


def _written(value) -> str:
    """Plain values, and a function by the name that its module gives it."""
    return f"{value.__module__.rpartition('.')[2]}.{value.__name__}" if callable(value) else repr(value)


def record(question: NumpyQuestion) -> dict:
    """Calls, public and hidden, with what is wanted of each and what each mistake gives."""
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
    """What a mistake gives; a word of its own where it gives nothing that can be written down."""
    try:
        with np.errstate(all="ignore"):
            found = wrong(*copy.deepcopy(args))
        recorded.pack(found, recorded.Bytes())
        return found
    except Exception:  # a mistake may break in any way, and then is not what came
        return recorded.RAISED
