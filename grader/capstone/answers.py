"""Find a learner's answers in the notebooks next to this one, and load each as the launch function that its lab asks for."""

import atexit
import json
import sys
import tempfile
import types
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from grader import questions
from grader.judge import answer

PRELUDE = "import math\n\nimport numpy as np\nimport triton\nimport triton.language as tl\n\n\n"
STUB = "raise NotImplementedError"


@dataclass(frozen=True)
class Answer:
    """A question's launch function, or the reason why there is none."""

    question: str
    launch: Callable | None
    why: str = ""


def cell_of(notebook: Path, name: str) -> str:
    """Return the source of a notebook's answer cell, "" if it has none."""
    for cell in json.loads(notebook.read_text(encoding="utf-8")).get("cells", ()):
        if cell.get("metadata", {}).get("nbgrader", {}).get("grade_id") == name:
            return "".join(cell.get("source", ""))
    return ""


def found(question_id: str, labs: Path) -> Answer:
    """Load an answer from the labs' folder: `<labs>/01_gemm_tiling/kernel.ipynb` and the like."""
    question = questions.find(question_id)
    notebook = labs / question.notebook_path
    if not notebook.exists():
        return Answer(question_id, None, f"no {question.notebook_path}")
    try:
        source = cell_of(notebook, question.name)
    except ValueError:
        return Answer(question_id, None, f"{question.notebook_path} is not a notebook")
    if not source or STUB in source:
        return Answer(question_id, None, f"not started in {question.notebook_path}")
    try:
        launch = loaded(question_id, source)
    except SyntaxError as error:
        line = (error.text or "").strip()[:60]  # without its number, which counts other lines than the cell's
        return Answer(question_id, None, f"its cell stops: {type(error).__name__}: {error.msg} in `{line}`")
    except Exception as error:  # whatever an answer raises while its cell runs
        return Answer(question_id, None, f"its cell stops: {first_line(error)}")
    if not callable(launch):
        return Answer(question_id, None, f"its cell defines no {question.entry}")
    return Answer(question_id, launch)


def loaded(question_id: str, source: str) -> Callable | None:
    """Run an answer's cell as a module of its own, from a file that Triton reads its kernels from.

    Return its launch, or None if it defines none.
    """
    question = questions.find(question_id)
    name = "answer_" + question_id.replace(".", "_")
    path = folder() / f"{name}.py"
    path.write_text(PRELUDE + answer.normalise(source), encoding="utf-8")
    module = types.ModuleType(name)
    module.__file__ = str(path)
    sys.modules[name] = module
    exec(compile(path.read_text(encoding="utf-8"), str(path), "exec"), module.__dict__)
    return module.__dict__.get(question.entry)


@cache
def folder() -> Path:
    held = tempfile.TemporaryDirectory(prefix="capstone-")
    atexit.register(held.cleanup)
    return Path(held.name)


def first_line(error: BaseException) -> str:
    said = str(error).strip().splitlines() or [""]
    return f"{type(error).__name__}: {said[0]}"[:100]
