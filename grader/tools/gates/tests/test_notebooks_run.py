"""Every notebook runs from top to bottom with its solution and each check passes."""

from pathlib import Path

import nbformat
import pytest

from grader.tools.gates import plain

ROOT = Path(__file__).parents[4]
NOTEBOOKS = plain.notebooks(ROOT)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_a_notebook_runs(tmp_path, path):
    assert plain.run(path, plain.environment(tmp_path, ROOT, NOTEBOOKS[path])) is None


def test_simulators_load_without_torch(tmp_path):
    assert plain.simulators(ROOT, plain.environment(tmp_path, ROOT, plain=True)) is None


def _notebook(tmp_path, source: str) -> Path:
    path = tmp_path / "planted.ipynb"
    cells = [nbformat.v4.new_code_cell(line) for line in source.split("\n")]
    nbformat.write(nbformat.v4.new_notebook(cells=cells), path)
    return path


@pytest.mark.parametrize("module", plain.BLOCKED)
def test_a_planted_need_of_torch_is_named(tmp_path, module):
    path = _notebook(tmp_path, f"import math\nimport {module}")
    assert f"No module named '{module}'" in plain.run(path, plain.environment(tmp_path, ROOT, plain=True))
    assert plain.run(path, plain.environment(tmp_path, ROOT, plain=False)) is None


def test_the_block_reaches_programs_that_a_cell_starts(tmp_path):
    source = "import subprocess, sys; subprocess.run([sys.executable, '-c', 'import torch'], check=True)"
    assert "CalledProcessError" in plain.run(
        _notebook(tmp_path, source), plain.environment(tmp_path, ROOT, True)
    )


def test_a_simulator_that_needs_torch_is_named(tmp_path):
    (tmp_path / "widgets").mkdir()
    (tmp_path / "widgets/__init__.py").write_text("")
    (tmp_path / "widgets/planted.py").write_text("import torch\n")
    said = plain.simulators(tmp_path, plain.environment(tmp_path / "block", tmp_path, plain=True))
    assert "No module named 'torch'" in said
