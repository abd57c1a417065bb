import shutil
from pathlib import Path

import pytest

from grader.tools.gates import tree

ROOT = Path(__file__).parents[4]


@pytest.fixture(scope="session")
def copy(tmp_path_factory) -> Path:
    """The project as git would keep it, to plant faults in."""
    root = tmp_path_factory.mktemp("house")
    for path in tree.files(ROOT):
        target = root / path.relative_to(ROOT)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, target)
    return root


@pytest.fixture
def plant(copy):
    """plant(path, text) writes one file of the copy until the test ends; text None removes it."""
    before = {}

    def write(name: str, text: str | None) -> None:
        path = copy / name
        before.setdefault(path, path.read_bytes() if path.exists() else None)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.unlink() if text is None else path.write_text(text, encoding="utf-8")

    yield write
    for path, content in before.items():
        path.unlink(missing_ok=True)
        if content is not None:
            path.write_bytes(content)


TABLE = """
| no. | slug | question | rooms |
|---|---|---|---|
| 00 | `roofline` | What limits it? | [lesson](course/00_roofline.md) [lab](labs/00_roofline/) \
[solution](solutions/00_roofline/) [kernels](kernels/roofline/) [simulators](widgets/roofline/) \
[checks](grader/topics/roofline) |
| 01 | `tiny` | Why so small? | [lesson](course/01_tiny.ipynb) solutions: none, it is read only; labs: none, \
as above; kernels: none, nothing runs; widgets: none, no inputs; checks: none, nothing is graded |
| 02 | `later` | When? | to come |
"""
FILES = """course/00_roofline.md course/01_tiny.md course/01_tiny.ipynb solutions/00_roofline/concepts.md
labs/00_roofline/concepts.ipynb kernels/roofline/__init__.py kernels/roofline/reference.py
widgets/roofline/__init__.py widgets/roofline/explorer.py grader/topics/roofline/lab.py"""


@pytest.fixture
def small(tmp_path) -> Path:
    """A course of two topics, and one to come, with nothing wrong in it."""
    (tmp_path / "README.md").write_text(TABLE)
    (tmp_path / "pyproject.toml").write_text('[project]\nversion = "1.2.0"\nrequires-python = ">=3.11"\n')
    (tmp_path / "CHANGELOG.md").write_text("# Changes\n\n## 1.2.0\n")
    for name in FILES.split():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("")
    return tmp_path
