"""A lesson's cells: which become simulators, and what the others print."""

from pathlib import Path

import pytest

from widgets.site.lesson_page import is_setup
from widgets.site.lessons import Cell, Lesson, Shown, _code
from widgets.site.outputs import outputs

TEXT = """# Small things

**How small?**

```python
from widgets import show
x = 6 * 7
print(f"<{x}>")
x + 1
```

Words.

```python
show("tile_walk", m=1)
```

```python
print("before", flush=True)
print("and after", flush=True)
1 / 0
```
"""


@pytest.fixture
def lesson(tmp_path):
    path = tmp_path / "09_small_things.md"
    path.write_text(TEXT)
    return Lesson(path)


@pytest.mark.parametrize(
    "source, wanted",
    [
        ('show("tile_walk")', Cell("code", "", Shown("tile_walk", {}))),
        ('show("tile_walk", predict=True, m=1)', Cell("code", "", Shown("tile_walk", {"m": 1}, True))),
        ('x = 1\nshow("a.b",\n     k=2)', Cell("code", "x = 1", Shown("a.b", {"k": 2}))),
        (
            'show("a", measured=last_record("gemm_tiling.gemm"))',
            Cell("code", "", Shown("a", {})),
        ),
        ('show("a", m=size)', Cell("code", 'show("a", m=size)')),
        ("show(name)", Cell("code", "show(name)")),
        ('w = show("a")', Cell("code", 'w = show("a")')),
        ("%timeit f()", Cell("code", "%timeit f()")),
        ("", Cell("code", "")),
    ],
)
def test_show_becomes_a_simulator_where_its_inputs_are_plain(source, wanted):
    assert _code(source) == wanted


@pytest.mark.parametrize(
    "source, folded",
    [
        ("import json", True),
        ("import json\nfrom a import b\n\nx, y = b(1), b(2)\nGB, TB = 1e9, 1e12", True),
        ("import json\nprint(1)", False),
        ("import json\ndef f(): ...", False),
        ("x = 1", False),
        ("%matplotlib inline\nimport json", False),
        ("", False),
    ],
)
def test_imports_are_folded_and_what_is_read_is_not(source, folded):
    assert is_setup(source) == folded


def test_a_lesson_knows_its_name(lesson):
    assert (lesson.title, lesson.slug, lesson.name) == ("Small things", "small_things", "09_small_things")
    assert [cell.shown.name for cell in lesson.cells if cell.shown] == ["tile_walk"]


def test_what_cells_print_is_kept_and_a_failure_is_said(lesson):
    found, wrong = outputs(lesson)
    assert len(found) == len(lesson.cells)
    first, shown, failed = (found[i] for i, cell in enumerate(lesson.cells) if cell.kind == "code")
    assert ">&lt;42&gt;\n</span></pre>" in first and ">43\n</span></pre>" in first
    assert shown == ""
    assert ">before\n</span>" in failed and ">and after\n</span></pre>" in failed
    assert failed.count("<pre") == 1 and "ZeroDivisionError" not in failed
    assert wrong == "ZeroDivisionError: division by zero"


def test_the_lessons_are_found():
    from widgets.site.lessons import lessons

    course = Path(__file__).parents[3] / "course"
    assert "01_gemm_tiling" in [lesson.name for lesson in lessons(course)]
