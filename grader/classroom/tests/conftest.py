"""A small course of its own: one lab, and students who hand it in."""

import json
import shlex
import shutil
from pathlib import Path

import nbformat
import pytest

LAB = "01_gemm_tiling"
TEXT = """# A small lab

![A tile](../../course/pictures/tile.svg)

| loads of A | loads of B |
|---|---|
| M K | K N |

```python locked=imports
from grader import check
```

How much will a square tile of 64 reuse?

```python
my_guess = None
```

```python answer=reuse
def reuse(bm, bn):
    ### BEGIN SOLUTION
    return 2 * bm * bn / (bm + bn)
    ### END SOLUTION
```

```python check=reuse
check("gemm_tiling.reuse", reuse)
```

```python answer=tile_loads
def tile_loads(m, n, k, bm, bn):
    ### BEGIN SOLUTION
    return m * k * -(-n // bn) + k * n * -(-m // bm)
    ### END SOLUTION
```

```python check=tile_loads
check("gemm_tiling.tile_loads", tile_loads)
```

```python
reuse(64, 64)
```

Say why, with the number above.

<!-- #region manual=why points=3 -->
Because both sides of a tile add up.
<!-- #endregion -->

<!-- #region task=draw points=2 -->
Draw the tile walk in a cell of your own below.

### BEGIN MARK SCHEME
One band of A, one of B.
### END MARK SCHEME
<!-- #endregion -->
"""
RIGHT = {
    "reuse": "def reuse(bm, bn):\n    return 2 * bm * bn / (bm + bn)\n",
    "tile_loads": "def tile_loads(m, n, k, bm, bn):\n    return m * k * -(-n // bn) + k * n * -(-m // bm)\n",
    "why": "The sides add up below the line.",
}
WRONG = {
    **RIGHT,
    "tile_loads": "def tile_loads(m, n, k, bm, bn):\n    return m * k * (n // bn) + k * n * (m // bm)\n",
}


class Course:
    def __init__(self, root: Path):
        self.root = root
        self.lab = json.loads(json.dumps(nbformat.read(root / f"labs/{LAB}/concepts.ipynb", as_version=4)))

    def place(self, student: str) -> Path:
        folder = self.root / "submitted" / student / LAB
        folder.mkdir(parents=True, exist_ok=True)
        return folder / "concepts.ipynb"

    def notebook(self, answers: dict) -> dict:
        notebook = json.loads(json.dumps(self.lab))
        for cell in notebook["cells"]:
            cell["source"] = answers.get(cell["id"], cell["source"])
        return notebook

    def hand_in(self, student: str, answers: dict, change=lambda notebook: notebook) -> Path:
        path = self.place(student)
        path.write_text(json.dumps(change(self.notebook(answers))))
        (path.parent / "timestamp.txt").write_text("2026-11-20 12:00:00.000000 UTC")
        return path

    def cell(self, notebook: dict, name: str) -> dict:
        return next(c for c in notebook["cells"] if c["id"] == name)

    def grade(self, new_lab: bool = False, **more) -> dict:
        from grader.classroom import command, grade_class

        round_ = command.prepare(self.root, LAB, "cpu", new_lab=new_lab)
        return {row.student: row for row in grade_class.grade(round_, **more)}

    def pages(self, student: str) -> Path:
        """Their feedback, made by nbgrader in this process."""
        from nbgrader.converters import GenerateFeedback

        from grader.classroom import gradebooks

        config = gradebooks.settings(self.root, LAB, student)
        log, _ = gradebooks.logger(None)
        with gradebooks.quiet():
            GenerateFeedback(coursedir=gradebooks.course(config, log), config=config, log=log).start()
        return self.root / "feedback" / student / LAB


def nbgrader(course: Course, words: str) -> None:
    """One of nbgrader's own commands in this process: its program alone takes seconds to start."""
    from nbgrader.apps import dbapp

    from grader.classroom import gradebooks

    apps = {
        "db assignment add": dbapp.DbAssignmentAddApp,
        "db student import": dbapp.DbStudentImportApp,
        "db assignment remove": dbapp.DbAssignmentRemoveApp,
    }
    name = next(name for name in apps if words.startswith(name))
    app = apps[name](config=gradebooks.settings(course.root, LAB))
    with gradebooks.quiet():
        app.initialize([*shlex.split(words.removeprefix(name)), f"--db=sqlite:///{course.root}/gradebook.db"])
        app.start()


def book(course: Course, student: str) -> dict:
    """What the gradebook holds of a student, by cell."""
    from grader.classroom import gradebooks

    return {found.name: found for _, found in gradebooks.grades(course.root, LAB, student)}


@pytest.fixture(scope="session")
def built(tmp_path_factory) -> Path:
    """The lab as nbgrader makes it, once for all tests: that takes seconds, a copy none."""
    from grader.notebooks import disk, make

    root = tmp_path_factory.mktemp("built")
    (root / "course/pictures").mkdir(parents=True)
    (root / "course/pictures/tile.svg").write_text('<svg xmlns="http://www.w3.org/2000/svg"/>')
    (root / f"solutions/{LAB}").mkdir(parents=True)
    (root / f"solutions/{LAB}/concepts.md").write_text(TEXT)
    found = make.make(root, [])
    assert not found.refused
    disk.put(root, found)
    return root


@pytest.fixture
def unentered(built, tmp_path) -> Course:
    """The course as it was built: no gradebook knows of the lab."""
    shutil.copytree(built, tmp_path, dirs_exist_ok=True)
    return Course(tmp_path)


@pytest.fixture(scope="session")
def entered_lab(built, tmp_path_factory) -> Path:
    """The same with the lab in its gradebook, which also takes seconds."""
    from grader.classroom import gradebooks

    root = tmp_path_factory.mktemp("entered")
    shutil.copytree(built, root, dirs_exist_ok=True)
    assert gradebooks.register(root, LAB) == ""
    return root


@pytest.fixture
def course(entered_lab, tmp_path) -> Course:
    shutil.copytree(entered_lab, tmp_path, dirs_exist_ok=True)
    return Course(tmp_path)


def grade_by_hand(course: Course, student: str, cell: str, points: float) -> None:
    from grader.classroom import gradebooks

    with gradebooks.opened(course.root, LAB) as gradebook:
        grade = gradebook.find_grade(cell, "concepts", LAB, student)
        grade.manual_score, grade.needs_manual_grade = points, False
        gradebook.db.commit()
