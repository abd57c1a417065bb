"""Lessons are found as texts or folders, in reading order, and what finds nothing fails."""

from pathlib import Path

import pytest

from kernels import texts

ROOT = Path(__file__).parents[2]


@pytest.fixture
def course(tmp_path):
    folder = tmp_path / "course"
    for name in ("00_one.md", "00_one.ipynb", "01_two/review.md", "01_two/appendix.md", "01_two/b_x.md"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("")
    (folder / "01_two/a_y.md").write_text("")
    (folder / "glossary.md").write_text("")
    return folder


def test_lessons_are_texts_and_folders_in_order(course):
    found = {name: [page.stem for page in pages] for name, pages in texts.lessons(course).items()}
    assert found == {"00_one": ["00_one"], "01_two": ["a_y", "b_x", "review", "appendix"]}


def test_a_page_of_a_folder_is_no_lab():
    assert texts.in_folder(Path("course/06_sampling_fusion/a_costs.md"))
    for other in ("solutions/06_sampling_fusion/kernel.md", "course/06_x.md", "course/simulators/06_x.md"):
        assert not texts.in_folder(Path(other))


def test_nothing_found_is_an_error(tmp_path, course):
    with pytest.raises(ValueError, match="course must hold lessons"):
        texts.lessons(tmp_path)
    (course / "02_three").mkdir()
    with pytest.raises(ValueError, match="must hold pages"):
        texts.lessons(course)


def test_a_lesson_is_not_there_twice(course):
    (course / "01_two.md").write_text("")
    with pytest.raises(ValueError, match="got both for 01_two"):
        texts.lessons(course)


def test_the_courses_lessons_are_found():
    assert len(texts.lessons(ROOT / "course")) >= 7
