"""List the lessons' texts in reading order: notebooks and pages are built from them, and the tiny model learned them.

A lesson is one text, course/09_toy.md, or a folder of pages, course/06_sampling_fusion/a_costs.md: pages with
a letter come first, then review.md (check yourself, interviews, cheat sheet) and appendix.md (what ages, or is a record).
"""

import re
from pathlib import Path

LESSON = re.compile(r"\d\d_[a-z][a-z0-9_]*")
PAGE = re.compile(r"[a-z]_[a-z][a-z0-9_]*|review|appendix")
LAST = ("review", "appendix")


def in_folder(path: Path) -> bool:
    """Return whether a text or notebook is a page of a lesson that is a folder, course/06_sampling_fusion/."""
    folder = path.parent
    return folder.parent.name == "course" and LESSON.fullmatch(folder.name) is not None


def pages(folder: Path) -> list[Path]:
    """Return a lesson's pages in reading order, and refuse a folder without pages."""
    found = sorted(
        folder.glob("*.md"),
        key=lambda path: (LAST.index(path.stem) + 1 if path.stem in LAST else 0, path.stem),
    )
    if not found:
        raise ValueError(
            f"a lesson's folder must hold pages (*.md), got none in {folder}; add one or remove it"
        )
    return found


def lessons(course: Path) -> dict[str, list[Path]]:
    """Return each lesson's pages by its name, 06_sampling_fusion, and refuse a course in which there are none."""
    found = {}
    for path in sorted(course.glob("[0-9][0-9]_*")):
        if path.suffix != ".md" and not path.is_dir():
            continue
        if path.stem in found:
            raise ValueError(f"a lesson must be one text or one folder, got both for {path.stem}; remove one")
        found[path.stem] = pages(path) if path.is_dir() else [path]
    if not found:
        raise ValueError(f"course must hold lessons, NN_name.md or NN_name/, got none in {course}")
    return found


def words(course: Path, lesson: str) -> str:
    """Return all that is written in a lesson, page after page."""
    return "\n".join(page.read_text(encoding="utf-8") for page in lessons(course)[lesson])
