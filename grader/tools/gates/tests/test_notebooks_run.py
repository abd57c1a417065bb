"""Every notebook runs from top to bottom with its solution and each check passes.

A kernel takes seconds to judge, so all labs of kernels but the first topic's are judged whole in `make proofs`; here
their answers are tried on a shown case.
"""

from pathlib import Path

import nbformat
import pytest

from grader.tools.gates import plain

ROOT = Path(__file__).parents[4]
NOTEBOOKS = plain.notebooks(ROOT)


KERNELS = [path for path, plain_machine in NOTEBOOKS.items() if not plain_machine]
LATER = [path for path in KERNELS if path.parent != KERNELS[0].parent]


def name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


@pytest.mark.parametrize(
    "path",
    [pytest.param(path, marks=pytest.mark.slow) if path in LATER else path for path in NOTEBOOKS],
    ids=name,
)
def test_a_notebook_runs(tmp_path, path):
    assert plain.run(path, plain.environment(tmp_path, ROOT, NOTEBOOKS[path])) is None


@pytest.mark.parametrize("path", LATER, ids=name)
def test_a_lab_of_kernels_runs_with_its_answers_tried(tmp_path, path):
    assert plain.run(path, plain.environment(tmp_path, ROOT, plain=False, tried=True)) is None


def test_a_wrong_answer_that_is_tried_is_named(tmp_path):
    source = "def reuse(bm, bn):\n    return bm + bn"
    cells = ["from grader import check", source, 'check("gemm_tiling.reuse", reuse)']
    said = plain.run(_notebook(tmp_path, cells), plain.environment(tmp_path, ROOT, plain=True, tried=True))
    assert "gemm_tiling.reuse: " in said


def test_simulators_load_without_torch(tmp_path):
    assert plain.simulators(ROOT, plain.environment(tmp_path, ROOT, plain=True)) is None


def _notebook(tmp_path, sources: list[str]) -> Path:
    path = tmp_path / "planted.ipynb"
    cells = [nbformat.v4.new_code_cell(source) for source in sources]
    nbformat.write(nbformat.v4.new_notebook(cells=cells), path)
    return path


@pytest.mark.parametrize("module", plain.BLOCKED)
def test_a_planted_need_of_torch_is_named(tmp_path, module):
    path = _notebook(tmp_path, ["import math", f"import {module}"])
    assert f"No module named '{module}'" in plain.run(path, plain.environment(tmp_path, ROOT, plain=True))
    assert plain.run(path, plain.environment(tmp_path, ROOT, plain=False)) is None


def test_the_block_reaches_programs_that_a_cell_starts(tmp_path):
    source = "import subprocess, sys; subprocess.run([sys.executable, '-c', 'import torch'], check=True)"
    assert "CalledProcessError" in plain.run(
        _notebook(tmp_path, [source]), plain.environment(tmp_path, ROOT, True)
    )


def test_a_simulator_that_needs_torch_is_named(tmp_path):
    (tmp_path / "widgets").mkdir()
    (tmp_path / "widgets/__init__.py").write_text("")
    (tmp_path / "widgets/planted.py").write_text("import torch\n")
    said = plain.simulators(tmp_path, plain.environment(tmp_path / "block", tmp_path, plain=True))
    assert "No module named 'torch'" in said
