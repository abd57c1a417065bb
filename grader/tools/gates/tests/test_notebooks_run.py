"""Every notebook runs from top to bottom with its solution and each check passes.

Each in a process of its own, forked from one that has read torch and its like (`warm`): to read them takes seconds.
Here the first lesson of each topic runs, the first notebook of every other kind and the shortest lab of kernels, and the
answers of one more lab are tried on a shown case; `make proofs` runs all, and judges all labs whole.
"""

import json
from pathlib import Path

import nbformat
import pytest

from grader.tools.gates import plain, warm

ROOT = Path(__file__).parents[4]
NOTEBOOKS = plain.notebooks(ROOT)


SHORTEST = "solutions/00_roofline/kernel.ipynb"
KERNELS = [path for path, plain_machine in NOTEBOOKS.items() if not plain_machine]


def name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def kind(path: Path) -> str:
    """Return the topic of a lesson, and else what a notebook is called in every topic."""
    lesson = path.parents[1].name == "course" and path.stem not in ("review", "appendix")
    return path.parent.name if lesson else path.stem


LONG = [path for path in KERNELS if name(path) != SHORTEST]
OF_ITS_KIND = {kind(path): path for path in reversed([path for path in NOTEBOOKS if path not in LONG])}


@pytest.fixture(scope="module")
def kernel():
    with warm.kernels(ROOT) as command:
        yield command


TRIED = ("solutions/00_roofline/first_kernels.ipynb",)  # the other labs of kernels are tried in make proofs


@pytest.mark.parametrize(
    "path",
    [pytest.param(p, marks=[pytest.mark.slow] * (p not in OF_ITS_KIND.values())) for p in NOTEBOOKS],
    ids=name,
)
def test_a_notebook_runs(tmp_path, kernel, path):
    assert plain.run(path, plain.environment(tmp_path, ROOT, NOTEBOOKS[path]), kernel) is None


@pytest.mark.parametrize(
    "path",
    [path if name(path) in TRIED else pytest.param(path, marks=pytest.mark.slow) for path in LONG],
    ids=name,
)
def test_a_lab_of_kernels_runs_with_its_answers_tried(tmp_path, kernel, path):
    assert plain.run(path, plain.environment(tmp_path, ROOT, plain=False, tried=True), kernel) is None


SEEN = """
import json, os, sys
course = [name for name in sys.modules if name.partition(".")[0] in ("grader", "kernels", "tilescope", "widgets")]
seen = [os.getcwd(), sys.path, sorted(dir()), course, "sitecustomize" in sys.modules, sorted(os.environ)]
with open("seen", "w") as file:
    json.dump([os.getpid(), seen], file)
"""


def test_each_notebook_has_a_fresh_kernel(tmp_path, kernel):
    """A process of its own, which sees what a cold one sees: folder, paths, variables, names, nothing of the course."""
    path, variables = _notebook(tmp_path, [SEEN]), plain.environment(tmp_path, ROOT, plain=False)
    seen = []
    for command in (None, kernel, kernel):
        assert plain.run(path, variables, command) is None
        seen.append(json.loads((tmp_path / "seen").read_text()))
    pids, [cold, *warm] = [pid for pid, _ in seen], [what for _, what in seen]
    assert warm == [cold, cold] and cold[3] == []
    assert len(set(pids)) == 3


def test_a_kernel_that_dies_is_named(tmp_path, kernel):
    path = _notebook(tmp_path, ["import os; os._exit(3)"])
    assert plain.run(path, plain.environment(tmp_path, ROOT, plain=True), kernel) == "Kernel died"


def test_a_wrong_answer_that_is_tried_is_named(tmp_path, kernel):
    source = "def reuse(bm, bn):\n    return bm + bn"
    cells = ["from grader import check", source, 'check("gemm_tiling.reuse", reuse)']
    said = plain.run(
        _notebook(tmp_path, cells), plain.environment(tmp_path, ROOT, plain=True, tried=True), kernel
    )
    assert "gemm_tiling.reuse: " in said


def test_simulators_load_without_torch(tmp_path):
    assert plain.simulators(ROOT, plain.environment(tmp_path, ROOT, plain=True)) is None


def _notebook(tmp_path, sources: list[str]) -> Path:
    path = tmp_path / "planted.ipynb"
    cells = [nbformat.v4.new_code_cell(source) for source in sources]
    nbformat.write(nbformat.v4.new_notebook(cells=cells), path)
    return path


@pytest.mark.parametrize("module", plain.BLOCKED)
@pytest.mark.parametrize("start", ["warm", "cold"])
def test_a_planted_need_of_torch_is_named(tmp_path, kernel, module, start):
    path = _notebook(tmp_path, ["import math", f"import {module}"])
    command = kernel if start == "warm" else None
    said = plain.run(path, plain.environment(tmp_path, ROOT, plain=True), command)
    assert f"No module named '{module}'" in said
    assert plain.run(path, plain.environment(tmp_path, ROOT, plain=False), kernel) is None


def test_the_block_reaches_programs_that_a_cell_starts(tmp_path, kernel):
    source = "import subprocess, sys; subprocess.run([sys.executable, '-c', 'import torch'], check=True)"
    assert "CalledProcessError" in plain.run(
        _notebook(tmp_path, [source]), plain.environment(tmp_path, ROOT, True), kernel
    )


def test_a_simulator_that_needs_torch_is_named(tmp_path):
    (tmp_path / "widgets").mkdir()
    (tmp_path / "widgets/__init__.py").write_text("")
    (tmp_path / "widgets/planted.py").write_text("import torch\n")
    said = plain.simulators(tmp_path, plain.environment(tmp_path / "block", tmp_path, plain=True))
    assert "No module named 'torch'" in said
