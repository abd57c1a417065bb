"""Check that lessons, simulators and concept labs need neither torch nor triton, by running them here without either."""

import os
import subprocess
import sys
from pathlib import Path

from .tree import modules

BLOCKED = ("torch", "triton")
CELL_SECONDS = 120  # a cell that takes longer hangs
BLOCKER = """
import sys

class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {blocked!r}:
            raise ModuleNotFoundError("No module named %r" % name, name=name)

sys.meta_path.insert(0, Absent())
# Modules read before (`warm`) are kept aside, because tearing them down might bring all down.
Absent.read = {{name: sys.modules.pop(name) for name in [*sys.modules] if name.partition(".")[0] in {blocked!r}}}
"""
TRIED = """
import grader

def tried(question_id, answer, mode=None):
    found = grader.run(answer, question=question_id)
    assert not found.error, question_id + ": " + found.error
    return found

grader.check = tried
"""


def environment(folder: Path, root: Path, plain: bool, tried: bool = False) -> dict[str, str]:
    """Variables under which every Python, and every Python it starts, has no torch and no triton.

    If answers are `tried`, a check runs only the first shown case, which saves seconds a question.
    """
    folder.mkdir(parents=True, exist_ok=True)
    first = BLOCKER.format(blocked=BLOCKED if plain else ()) + TRIED * tried
    (folder / "sitecustomize.py").write_text(first, encoding="utf-8")
    paths = [str(folder), str(root), os.environ.get("PYTHONPATH", "")]
    records = {"TILE_RECORDS": str(folder / "records"), "IPYTHONDIR": str(folder / "ipython")}
    kept = {key: value for key, value in os.environ.items() if key != "TRITON_INTERPRET"}
    return {**kept, **records, "PYTHONPATH": os.pathsep.join(filter(None, paths)), "NBGRADER_VALIDATING": "1"}


def notebooks(root: Path) -> dict[Path, bool]:
    """Each notebook that can run to its end -> must it run on a plain machine?"""
    lessons = {
        path: True for room in ("course", "course/[0-9]*") for path in sorted(root.glob(f"{room}/*.ipynb"))
    }
    solutions = {path: path.stem == "concepts" for path in sorted(root.glob("solutions/*/*.ipynb"))}
    return lessons | solutions


def run(notebook: Path, variables: dict[str, str], kernel: list[str] | None = None) -> str | None:
    """Run a notebook from top to bottom in its folder. Return what went wrong, or None. `kernel` is the command of
    one."""
    import nbformat
    from nbclient import NotebookClient
    from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError

    cells = nbformat.read(notebook, as_version=4)
    place = {"metadata": {"path": str(notebook.parent)}}
    client = NotebookClient(cells, timeout=CELL_SECONDS, kernel_name="python3", resources=place)
    if kernel:
        client.create_kernel_manager().kernel_spec.argv = kernel
    try:
        client.execute(env=variables)
    except (CellTimeoutError, CellExecutionError, DeadKernelError) as error:
        return str(error)[-3000:]
    return None


def simulators(root: Path, variables: dict[str, str]) -> str | None:
    """Import widgets and every model below it in one Python. Return what went wrong, or None."""
    paths = [path for path in modules(root, "widgets") if path.name != "__main__.py"]
    names = [".".join(path.relative_to(root).with_suffix("").parts) for path in paths]
    load = "import importlib, sys; [importlib.import_module(name) for name in sys.argv[1:]]"
    done = subprocess.run(
        [sys.executable, "-c", load, *names], env=variables, cwd=root, capture_output=True, text=True
    )
    return done.stderr[-3000:] if done.returncode else None
