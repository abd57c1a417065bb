"""Run in a student edition's folder: every function that it holds, taken as the answer to every question in numpy.

Prints, as JSON, which functions give all that is wanted: {question: ["module.function", ...]}, of the questions that its
arguments name or, without any, of all.
"""

import ast
import copy
import importlib
import inspect
import json
import resource
import signal
import sys
from functools import cache
from pathlib import Path

import numpy as np

HERE = Path.cwd()
sys.path[:0] = [str(HERE), str(HERE / "grader/box/serve")]  # as a box has it, for what runs inside

from grader import questions  # noqa: E402  the edition's own
from grader.jail.inside.numpy_answer import encode  # noqa: E402
from grader.judge import returned  # noqa: E402

# What knows of topics; the rooms that judge know of none, which a rule of the house holds.
CODE = ("kernels/**/*.py", "grader/topics/**/*.py", "grader/questions/*.py", "widgets/*/*.py")
CALL_S, WAIT_S = 0.3, 5.0  # of the processor, which a busy machine doesn't shorten; and for one that waits
MORE_BYTES = 256 << 20  # than it has: a function that takes counts for sizes would fill arrays for seconds


class TooLong(BaseException):
    pass


def functions():
    """(name, function) of everything that can be called, with the helpers of its own module around it."""
    for path in sorted({path for pattern in CODE for path in HERE.glob(pattern)}):
        name = ".".join(path.relative_to(HERE).with_suffix("").parts).removesuffix(".__init__")
        if name.startswith("widgets.site"):
            continue
        try:
            module = importlib.import_module(name)
        except ImportError:  # torch is for a GPU's bars alone
            continue
        assert Path(module.__file__).is_relative_to(HERE), f"{name} is not the edition's own"
        yield from _of(module, name)
    for path in sorted([*HERE.glob("course/**/*.ipynb"), *HERE.glob("labs/*/*.ipynb")]):
        yield from _in_notebook(path)


def _of(module, name: str):
    for key, value in vars(module).items():
        if inspect.isfunction(value) and value.__module__ == name:
            yield f"{name}.{key}", value
        elif isinstance(value, type) and value.__module__ == name:
            yield f"{name}.{key}", value
            for inner, method in vars(value).items():
                if isinstance(method, staticmethod | classmethod):
                    yield f"{name}.{key}.{inner}", getattr(value, inner)
        elif isinstance(value, dict):  # a table of functions
            for inner, one in value.items():
                for depth, each in enumerate(one if isinstance(one, tuple) else (one,)):
                    if inspect.isfunction(each):
                        yield f"{name}.{key}[{inner!r}]{depth or ''}", each


def _in_notebook(path: Path):
    """The functions of a notebook's code cells, and of the code in its prose, with what its first cells import."""
    name, place = path.relative_to(HERE).as_posix(), {"np": np, "numpy": np}
    for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
        source = "".join(cell["source"])
        texts = (
            [source]
            if cell["cell_type"] == "code"
            else [b.partition("\n")[2] for b in source.split("```")[1::2]]
        )
        for text in texts:
            for node in _parsed(text):
                if isinstance(node, ast.Import | ast.ImportFrom | ast.FunctionDef | ast.Assign):
                    _run(ast.Module([node], []), place)
                if isinstance(node, ast.FunctionDef) and inspect.isfunction(place.get(node.name)):
                    yield f"{name}: {node.name}", place[node.name]


def _parsed(text: str) -> list:
    try:
        return ast.parse(text).body
    except SyntaxError:
        return []


def _run(module: ast.Module, place: dict) -> None:
    try:
        exec(compile(module, "cell", "exec"), place)
    except Exception:  # a cell may need what cells before it make
        return


@cache
def takes(function, count: int) -> bool:
    try:
        inspect.signature(function).bind(*range(count))
    except (TypeError, ValueError):
        return False
    return True


def clocks(processor_s: float, wall_s: float) -> None:
    signal.setitimer(signal.ITIMER_PROF, processor_s)
    signal.setitimer(signal.ITIMER_REAL, wall_s)


def gives(question, function, calls: list) -> bool:
    """Whether it gives all that is wanted, as the judge of numpy questions compares."""
    for call in calls:
        if not takes(function, len(call.args)):
            return False
        arrays = {}
        try:  # the outer one is for an alarm that rings while it is put off
            clocks(CALL_S, WAIT_S)
            try:
                with np.errstate(all="ignore"):
                    encoded = encode(function(*copy.deepcopy(call.args)), arrays)
            finally:
                clocks(0, 0)
        except (Exception, TooLong):
            return False
        try:
            if returned.of_call(question, call.args, encoded, question.reference(*call.args), arrays):
                return False
        except MemoryError:  # what it gave is larger than any answer
            return False
    return True


def main() -> None:
    def ended(*_):
        raise TooLong

    signal.signal(signal.SIGPROF, ended)
    signal.signal(signal.SIGALRM, ended)
    known = list(functions())
    has = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (has + MORE_BYTES, resource.RLIM_INFINITY))
    named = sys.argv[1:]
    asked = [q for q in questions.load().values() if q.kind == "numpy" and (not named or q.id in named)]
    found = {}
    for question in asked:
        calls = [*question.public, *question.hidden(np.random.default_rng(3))]
        found[question.id] = [name for name, function in known if gives(question, function, calls)]
    print(json.dumps({"functions": len(known), "passes": found}))


if __name__ == "__main__":
    main()
