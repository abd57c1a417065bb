"""A lesson's cells: which become simulators, and what the others print."""

from pathlib import Path

import pytest

from widgets.site.lessons import Cell, Lesson, Shown, Text, _code, lessons
from widgets.site.outputs import outputs

ROOT = Path(__file__).parents[3]
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
def text(tmp_path):
    path = tmp_path / "09_small_things.md"
    path.write_text(TEXT)
    return Text(path)


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


def test_a_lesson_knows_its_name(text):
    lesson = Lesson(text.name, (text,))
    assert (lesson.title, lesson.slug, lesson.name) == ("Small things", "small_things", "09_small_things")
    assert not lesson.in_pages
    assert [cell.shown.name for cell in lesson.cells if cell.shown] == ["tile_walk"]


def test_what_cells_print_is_kept_and_a_failure_is_said(text):
    found, wrong = outputs(text)
    assert len(found) == len(text.cells)
    first, shown, failed = (found[i] for i, cell in enumerate(text.cells) if cell.kind == "code")
    assert ">&lt;42&gt;\n</span></pre>" in first and ">43\n</span></pre>" in first
    assert shown == ""
    assert ">before\n</span>" in failed and ">and after\n</span></pre>" in failed
    assert failed.count("<pre") == 1 and "ZeroDivisionError" not in failed
    assert wrong == "ZeroDivisionError: division by zero"


def test_lessons_are_texts_or_folders_of_pages():
    found = {lesson.name: lesson for lesson in lessons(ROOT / "course")}
    assert len(found) >= 7
    folder = found["06_sampling_fusion"]
    names = [page.name.partition("/")[2] for page in folder.pages]
    assert folder.in_pages and names[0].startswith("a_") and names[-2:] == ["review", "appendix"]
    assert names[:-2] == sorted(names[:-2]) and folder.title == "Sampling fusion"
    assert all(page.minutes and not page.cells[0].text.startswith("Lesson") for page in folder.pages)


def test_a_lesson_that_was_not_built_is_named(tmp_path):
    (tmp_path / "09_small_things.md").write_text(TEXT)
    with pytest.raises(ValueError, match="run make build"):
        lessons(tmp_path)
