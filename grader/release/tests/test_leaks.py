"""What may not leave with a student edition ends the command, which names it."""

import shutil
import subprocess
from pathlib import Path

import pytest

from grader.notebooks import make
from grader.release import command, edition
from grader.release.leaks import leaks
from grader.release.manifest import allowed
from grader.tools.gates import tree

LAB = """# A lab

```python locked=imports
from grader import check
```

```python answer=reuse
def reuse(bm, bn):
    ### BEGIN SOLUTION
    both_sides_of_the_tile = bm + bn
    return 2 * bm * bn / both_sides_of_the_tile
    ### END SOLUTION
```

```python check=reuse
check("gemm_tiling.reuse", reuse)
```
"""
SOLVED = "solutions/01_gemm_tiling/concepts.ipynb"


def git(root: Path, *words: str) -> None:
    subprocess.run(["git", "-C", str(root), *words], check=True, capture_output=True)


def files(root: Path) -> dict[str, bytes]:
    """What would leave, of a course without questions of its own."""
    names = (path.relative_to(root).as_posix() for path in tree.files(root))
    return {name: (root / name).read_bytes() for name in names if allowed(name)}


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """A course of one lab under git, and what its texts make."""
    root = tmp_path_factory.mktemp("course")
    for name, text in (("solutions/01_gemm_tiling/concepts.md", LAB), ("widgets/tile.py", "SIDE = 64\n")):
        (root / name).parent.mkdir(parents=True)
        (root / name).write_text(text)
    made = make.make(root, [])
    for name, content in made.files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(content)
    git(root, "init", "-q")
    git(root, "add", ".")
    return root, made


@pytest.fixture
def course(built, tmp_path):
    shutil.copytree(built[0], tmp_path / "course")
    return tmp_path / "course", built[1]


def solved_in_place(root: Path) -> str:
    shutil.copy(root / SOLVED, root / "labs/01_gemm_tiling/concepts.ipynb")
    return "labs/01_gemm_tiling/concepts.ipynb is not what `python -m grader build` makes"


def solved_beside_it(root: Path) -> str:
    shutil.copy(root / SOLVED, root / "labs/01_gemm_tiling/concepts-solved.ipynb")
    git(root, "add", ".")
    return "labs/01_gemm_tiling/concepts-solved.ipynb is built from no text"


def solved_among_the_lessons(root: Path) -> str:
    (root / "course").mkdir()
    shutil.copy(root / SOLVED, root / "course/mine.ipynb")
    return "course/mine.ipynb is built from no text"


def own_notes(root: Path) -> str:
    (root / "widgets/notes.txt").write_text("for me alone")
    return "widgets/notes.txt is not tracked by git"


def a_line_in_a_module(root: Path) -> str:
    (root / "widgets/tile.py").write_text("def f(bm, bn):\n    both_sides_of_the_tile = bm + bn\n")
    return "widgets/tile.py holds a line of a solution, 'both_sides_of_the_tile = bm + bn'"


def the_mark_in_a_text(root: Path) -> str:
    (root / "widgets/tile.py").write_text("### BEGIN SOLUTION\nx = 1\n### END SOLUTION\n")
    return "widgets/tile.py holds the mark of a solution"


def packed(root: Path) -> str:
    (root / "course").mkdir()
    shutil.make_archive(str(root / "course/mine"), "zip", root / "solutions")
    git(root, "add", ".")
    return "course/mine.zip is neither text nor a picture"


def test_a_course_as_it_was_built_may_leave(course):
    (course[0] / "widgets/tile.png").write_bytes(b"\x89PNG\r\n\x1a\n\0\xff")
    git(course[0], "add", ".")
    assert leaks(*course, files(course[0])) == []


@pytest.mark.parametrize(
    "spoil",
    (
        solved_in_place,
        solved_beside_it,
        solved_among_the_lessons,
        own_notes,
        a_line_in_a_module,
        the_mark_in_a_text,
        packed,
    ),
)
def test_what_is_no_students_business_is_named(course, spoil):
    root, made = course
    words = spoil(root)
    (said,) = leaks(root, made, files(root))
    assert said.startswith(words)


def test_a_lesson_may_share_a_line_and_not_a_whole_solution(course, monkeypatch):
    root, made = course
    line = "both_sides_of_the_tile = bm + bn\n"
    (root / "kernels/gemm_tiling").mkdir(parents=True)
    cost = root / "kernels/gemm_tiling/cost.py"
    cost.write_text(line)
    git(root, "add", ".")
    assert leaks(root, made, files(root)) == []
    monkeypatch.setattr("grader.release.leaks.WHOLE", 2)
    cost.write_text(f"{line}return 2 * bm * bn / both_sides_of_the_tile\n")
    assert "kernels/gemm_tiling/cost.py holds a whole solution" in leaks(root, made, files(root))[0]


def test_the_command_makes_nothing_then(course, tmp_path, capsys, monkeypatch):
    root, _ = course
    monkeypatch.setattr(edition, "make", lambda root, say: files(root))
    solved_in_place(root)
    assert command.main([str(tmp_path / "edition")], root=root) != 0
    said = capsys.readouterr().err
    assert "nothing was made" in said and "labs/01_gemm_tiling/concepts.ipynb" in said
    assert not (tmp_path / "edition").exists()
