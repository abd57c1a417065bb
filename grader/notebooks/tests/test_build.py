"""Texts become notebooks and labs, the same to the byte, and what must not be in one is refused by name."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest

from grader.classroom import gradebooks
from grader.notebooks import command, make, text

ROOT = Path(__file__).parents[3]
LESSON = """# A lesson

Prose.


More prose.

```python
1 + 1
```
"""
LAB = """# A lab

```python locked=imports
from grader import check
```

```python answer=double
def double(x):
    \"\"\"Twice x.\"\"\"
    ### BEGIN SOLUTION
    secret = 2
    return secret * x
    ### END SOLUTION
```

```python check=double points=4
check("toy.double")
```

<!-- #region manual=why points=2.5 -->
Because the secret is two.

```python
shown = "not run"
```
<!-- #endregion -->

<!-- #region task=draw points=1 -->
Draw it.

### BEGIN MARK SCHEME
One point for a hidden axis.
### END MARK SCHEME
<!-- #endregion -->
"""


@pytest.fixture
def course(tmp_path):
    for name, content in {"course/01_toy.md": LESSON, "solutions/01_toy/concepts.md": LAB}.items():
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).write_text(content)
    return tmp_path


def build(course, *argv) -> int:
    return command.main(list(argv), course)


def cells(path):
    return {cell.id: cell for cell in nbformat.read(path, as_version=4).cells}


def test_texts_become_notebooks_and_labs(course, capsys):
    assert build(course) == 0
    assert "1 lessons, 1 solutions, 1 lab files: all as their texts say" in capsys.readouterr().out
    solution, lab = (cells(course / room / "01_toy/concepts.ipynb") for room in ("solutions", "labs"))
    assert list(solution) == list(lab) == ["cell_01", "imports", "double", "check_double", "why", "draw"]
    marks = {name: cell.metadata.nbgrader for name, cell in lab.items() if "nbgrader" in cell.metadata}
    assert {name: mark.get("points") for name, mark in marks.items()} == {
        "imports": None,
        "double": None,
        "check_double": 4,
        "why": 2.5,
        "draw": 1,
    }
    assert all(mark["grade_id"] == name for name, mark in marks.items())
    assert lab["imports"].metadata["editable"] is False and lab["check_double"].metadata["editable"] is False
    assert "raise NotImplementedError" in lab["double"].source and "Twice x." in lab["double"].source
    assert lab["why"].source == "YOUR ANSWER HERE"
    assert "secret" not in (course / "labs/01_toy/concepts.ipynb").read_text()
    assert "hidden axis" not in (course / "labs/01_toy/concepts.ipynb").read_text()
    for path in course.glob("**/*.ipynb"):
        nbformat.validate(nbformat.read(path, as_version=4))


def test_a_second_build_changes_no_byte(course):
    build(course)
    first = {path: path.read_bytes() for path in course.glob("**/*.ipynb")}
    for path in first:
        path.unlink()
    build(course)
    assert {path: path.read_bytes() for path in course.glob("**/*.ipynb")} == first and len(first) == 3
    assert not list(course.glob("**/gradebook.db"))


def test_nbgrader_itself_makes_the_same_lab(course):
    """An instructor's own `nbgrader generate_assignment` leaves the tree clean and the texts at home."""
    build(course)
    built = (course / "labs/01_toy/concepts.ipynb").read_bytes()
    (course / "solutions/01_toy/tile.svg").write_text("<svg/>")
    (course / "nbgrader_config.py").write_text((ROOT / "nbgrader_config.py").read_text())
    with gradebooks.opened(course):
        pass  # a gradebook is there, which a command of nbgrader's would take seconds to begin
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    run = [sys.executable, "-m", "nbgrader", "generate_assignment", "01_toy", "--force"]
    done = subprocess.run(run, cwd=course, env={**os.environ, "PATH": path}, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert (course / "labs/01_toy/concepts.ipynb").read_bytes() == built
    assert sorted(p.name for p in (course / "labs/01_toy").iterdir()) == ["concepts.ipynb", "tile.svg"]


def spoil_output(course):
    path = course / "course/01_toy.ipynb"
    notebook = json.loads(path.read_text())
    notebook["cells"][-1]["outputs"] = [{"output_type": "stream", "name": "stdout", "text": "2"}]
    path.write_text(json.dumps(notebook))


def spoil_lab(course):
    path = course / "labs/01_toy/concepts.ipynb"
    path.write_text(path.read_text().replace("Twice x.", "Twice y."))


def spoil_space(course):
    path = course / "course/01_toy.ipynb"
    path.write_text(path.read_text() + "\n")


SPOILED = (
    (spoil_output, "course/01_toy.ipynb: cell 3 (cell_03) has saved output. Run python -m grader build"),
    (spoil_lab, "labs/01_toy/concepts.ipynb: cell 3 (double) differs from its text"),
    (spoil_space, "course/01_toy.ipynb: differs from its text in the number of cells"),
    (lambda c: (c / "course/01_toy.ipynb").unlink(), "course/01_toy.ipynb: is missing"),
    (lambda c: (c / "labs/01_toy/concepts.md").write_text(LAB), "labs/01_toy/concepts.md: is not built"),
    (lambda c: (c / "course/02_old.ipynb").write_text("{}"), "course/02_old.ipynb: is not built from any"),
)


@pytest.mark.parametrize("spoil, said", SPOILED, ids=[said for _, said in SPOILED])
def test_check_names_any_difference_and_writes_nothing(course, capsys, spoil, said):
    build(course)
    assert build(course, "--check") == 0
    spoil(course)
    before = {path: path.read_bytes() for path in course.glob("**/*") if path.is_file()}
    assert build(course, "--check") == 1
    assert said in capsys.readouterr().out
    assert {path: path.read_bytes() for path in course.glob("**/*") if path.is_file()} == before


def test_a_build_clears_labs_of_what_is_not_built(course, capsys):
    build(course)
    (course / "labs/01_toy/old.md").write_text(LAB)
    assert build(course) == 0
    assert "removed labs/01_toy/old.md" in capsys.readouterr().out


def test_a_build_without_solutions_says_so_and_loses_no_lab(course, capsys):
    """A student edition, or a checkout of which solutions/ was taken out by hand."""
    build(course)
    before = {path: path.read_bytes() for path in course.glob("labs/**/*") if path.is_file()}
    assert before
    (course / "labs/02_other").mkdir()
    (course / "labs/02_other/kernel.ipynb").write_text("{}")
    assert build(course) == 1, "a lab without a text is named, and a person decides"
    assert "labs/02_other/kernel.ipynb: is not built from any text" in capsys.readouterr().out
    shutil.rmtree(course / "solutions")
    for arguments in ((), ("--check",)):
        assert build(course, *arguments) == 0
        assert "solutions/ holds no texts here, so labs/ stays as it is" in capsys.readouterr().out
    assert (course / "labs/02_other/kernel.ipynb").exists()
    assert {path: path.read_bytes() for path in before} == before


CODE = "\n```python\n{}\n```\n"
MANY = "\n".join(f"x{n} = {n}" for n in range(11))
REFUSED = (
    (CODE.format("%pip install x"), "an install"),
    (CODE.format("!ls"), "a shell command"),
    (CODE.format("%cd .."), "a change of folder"),
    (CODE.format("import os\nos.chdir('..')"), "a change of folder"),
    (CODE.format("import sys\nsys.path.append('..')"), "sys.path"),
    (CODE.format("open('/home/me/x')"), "an absolute path"),
    (CODE.format("open('~/x')"), "an absolute path"),
    ("\nSee `/work/notes`.\n", "an absolute path"),
    (CODE.format("import urllib.request"), "import of urllib: the network"),
    (CODE.format("read('https://example.org/x')"), "the network"),
    ("\n![](data:image/png;base64,AAAA)\n", "a base64 picture"),
    (CODE.format(MANY), "11 statements of helper code"),
    (CODE.format("from kernels.gemm_tiling import gemm"), "import of kernels.gemm_tiling.gemm"),
    (CODE.format("import kernels.bench"), "import of kernels.bench"),
    (CODE.format("from solutions import x"), "nothing imports notebooks"),
    (CODE.format("def f(:"), "does not parse"),
    (CODE.format("### BEGIN SOLUTION\nx = 1\n### END SOLUTION"), "a solution outside a cell marked"),
    ("\n```python answer=f\n### BEGIN SOLUTION\n```\n", "1 BEGIN SOLUTION and 0 END SOLUTION"),
    ("\n```python answer=f\nx = 1\n```\n", "an answer without its check. Put check=f after it"),
    ("\n```python check=f points=1\nx = 1\n```\n", "a check without its answer"),
    (
        "\n```python answer=double\n```\n\n```python check=double points=1\n```\n",
        "the name double a second time",
    ),
    ("\n```python check=f\n```\n", "check=f must have points"),
    ("\n```python check=f points=many\n```\n", "points must be a number, got 'many'"),
    ("\n```python answer=f points=3\n```\n", "points must be on the check"),
    ("\n```python answer=Double\n```\n", "answer must be a snake_case name"),
    ("\n```python answer=f check=f\n```\n", "at most one of answer"),
    ("\n```python lokced=f\n```\n", "got lokced"),
    ("\n```python locked\n```\n", "key=value, got 'locked'"),
    ("\n<!-- #region answer=f -->\nx\n<!-- #endregion -->\n", "must be on a code cell"),
)


@pytest.mark.parametrize("added, said", REFUSED, ids=[said for _, said in REFUSED])
def test_what_must_not_be_in_a_notebook_is_refused_by_name(course, added, said):
    path = course / "solutions/01_toy/concepts.md"
    path.write_text(LAB + added)
    refused = make.make(course, []).refused
    assert any(said in line and line.startswith("solutions/01_toy/concepts.md:") for line in refused), refused


ALLOWED = (
    CODE.format(
        "import numpy as np\nfrom kernels.gemm_tiling import reference, cost\nfrom kernels import machines"
    ),
    CODE.format("%matplotlib inline\nplot(a / b, 'GB/s')"),
    CODE.format("\n".join(f"import numpy as n{n}" for n in range(20))),
    "\nRead [the page](https://example.org) and 3 FLOP/byte of http/2; `pip` is not needed.\n",
    "\n```py\n!pip install shown  # but not run\n```\n",
)


@pytest.mark.parametrize("added", ALLOWED)
def test_what_is_harmless_passes(course, added):
    (course / "course/01_toy.md").write_text(LESSON + added)
    assert make.make(course, []).refused == []


def test_a_second_reference_is_refused(course):
    (course / "kernels/toy").mkdir(parents=True)
    (course / "kernels/toy/reference.py").write_text("def twice(x):\n    return 2 * x\n")
    (course / "course/01_toy.md").write_text(LESSON + CODE.format("def twice(x):\n    return x + x"))
    assert any("a second twice()" in line for line in make.make(course, []).refused)


def test_a_leaking_file_is_refused(course):
    (course / "solutions/01_toy/notes.py").write_text("secret = 2\n")
    assert any(
        "notes.py: a file of solutions/ among the labs" in line for line in make.make(course, []).refused
    )


def test_a_leaking_line_is_refused(course, monkeypatch):
    from nbgrader.preprocessors import ClearSolutions

    monkeypatch.setattr(ClearSolutions, "preprocess", lambda self, nb, resources: (nb, resources))
    refused = make.make(course, []).refused
    assert any("labs/01_toy/concepts.ipynb: double: a line of the solution" in line for line in refused)
    assert any("why: a line of the solution" in line for line in refused)


def test_a_refused_notebook_leaves_the_others_and_what_is_on_disk(course, capsys):
    build(course)
    before = (course / "labs/01_toy/concepts.ipynb").read_bytes()
    (course / "solutions/01_toy/concepts.md").write_text(LAB + CODE.format("%cd .."))
    (course / "course/01_toy.md").write_text(LESSON + "\nNew prose.\n")
    assert build(course) == 1
    assert "New prose." in (course / "course/01_toy.ipynb").read_text()
    assert (course / "labs/01_toy/concepts.ipynb").read_bytes() == before


def test_where_nbgrader_fails_the_labs_stay(course, monkeypatch, capsys):
    from nbgrader.preprocessors import ClearSolutions

    def fail(self, notebook, resources):
        raise RuntimeError("planted")

    build(course)
    before = (course / "labs/01_toy/concepts.ipynb").read_bytes()
    monkeypatch.setattr(ClearSolutions, "preprocess", fail)
    assert build(course) == 1
    said = capsys.readouterr().out
    assert "solutions: nbgrader would not make the labs:" in said and "RuntimeError: planted" in said
    assert (course / "labs/01_toy/concepts.ipynb").read_bytes() == before


def test_points_come_from_the_table_of_questions():
    table = {"double": 10.0}.get
    notebook, complaints = text.read("```python check=double\n```\n", table)
    assert complaints == [] and notebook.cells[0].metadata.nbgrader.points == 10
    _, complaints = text.read("```python check=double points=9\n```\n", table)
    assert "points must be 10 as in the topic's questions.py, got 9" in complaints[0][1]


def test_a_topic_is_built_alone_and_an_unknown_one_is_wrong_usage(course, capsys):
    (course / "course/02_other.md").write_text(LESSON)
    assert build(course, "other") == 0
    assert [path.name for path in course.glob("**/*.ipynb")] == ["02_other.ipynb"]
    assert build(course, "nothing") == 64


def test_the_notebooks_of_this_course_are_as_their_texts_say(capsys):
    assert command.main(["--check"]) == 0, capsys.readouterr().out
