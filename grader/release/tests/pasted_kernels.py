"""Every kernel that a student edition holds, in place of the kernels of every right answer, with its right launch."""

import ast
import itertools
import json
from dataclasses import dataclass
from pathlib import Path

from grader.proofs.right import kernel_questions, right
from grader.questions import Question

STUB = "YOUR CODE HERE"  # in a kernel that a lab leaves to its learner, and that computes nothing


@dataclass(frozen=True)
class Kernel:
    place: str
    name: str
    parameters: frozenset  # but those that are constants of the program
    source: str  # all of the text that it stands in


def held(folder: Path) -> list[Kernel]:
    """From modules, from cells, and from the code in a lesson's prose."""
    found = []
    for path in sorted(folder.rglob("*.py")):
        found += _kernels(path.relative_to(folder).as_posix(), path.read_text(encoding="utf-8"))
    for path in sorted(folder.rglob("*.ipynb")):
        for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
            source = "".join(cell["source"])
            texts = (
                [source]
                if cell["cell_type"] == "code"
                else [b.partition("\n")[2] for b in source.split("```")[1::2]]
            )
            for text in texts:
                found += _kernels(path.relative_to(folder).as_posix(), text)
    return found


def _kernels(place: str, text: str) -> list[Kernel]:
    return [
        Kernel(place, node.name, frozenset(a.arg for a in node.args.args if a.annotation is None), text)
        for node in _body(text)
        if isinstance(node, ast.FunctionDef)
        and any("jit" in ast.unparse(d) for d in node.decorator_list)
        and STUB not in (ast.get_source_segment(text, node) or "")
    ]


def _body(text: str) -> list:
    try:
        return ast.parse(text).body
    except SyntaxError:  # a lesson's kernel with lines left out is no program
        return []


def answers(folder: Path) -> list[tuple[Question, str, str]]:
    """(question, which kernels, cell): each that could bind to the question's arguments."""
    here, found = held(folder), []
    for question in kernel_questions():
        tree = ast.parse(right(question.id))
        own = _kernels("", right(question.id))
        fit = [
            [k for k in here if _known(question, k) and (k.name == one.name or len(own) == 1)] for one in own
        ]
        names = {one.name for one in own}
        launch = ast.Module([n for n in tree.body if getattr(n, "name", None) not in names], [])
        for chosen in itertools.product(*fit):
            text = "\n\n".join(dict.fromkeys(k.source for k in chosen))
            renamed = _Renamed({one.name: k.name for one, k in zip(own, chosen, strict=True)})
            found.append(
                (
                    question,
                    ", ".join(f"{k.place}: {k.name}" for k in chosen),
                    f"{text}\n\n{ast.unparse(renamed.visit(launch))}",
                )
            )
    return found


def _known(question: Question, kernel: Kernel) -> bool:
    """Whether it writes an output of the question's."""
    return any(f"{t.name}_ptr" in kernel.parameters for t in question.tensors if t.role != "in")


class _Renamed(ast.NodeTransformer):
    def __init__(self, names: dict):
        self.names = names

    def visit_Name(self, node):
        return ast.Name(self.names.get(node.id, node.id), node.ctx)
