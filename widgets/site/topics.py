"""List the topics of README's table, each with its lesson, its labs and its simulators."""

import json
import re
from dataclasses import dataclass
from pathlib import Path

from widgets.declare import Declaration
from widgets.registry import every
from widgets.site.lessons import Lesson, lessons, spelled

ROW = re.compile(r"^\|\s*(\d\d)\s*\|\s*`(\w+)`\s*\|\s*([^|]+?)\s*\|", re.M)


@dataclass(frozen=True)
class Lab:
    path: str  # 01_gemm_tiling/kernel
    title: str  # Lab 01, kernel: a tiled GEMM

    @property
    def short(self) -> str:
        """Return a short name such as 'Kernel: a tiled GEMM'. Next to its topic's name its number is redundant."""
        words = self.title.partition(", ")[2] or self.title
        return words[:1].upper() + words[1:]


@dataclass(frozen=True)
class Topic:
    number: str
    slug: str
    question: str
    lesson: Lesson | None
    labs: tuple[Lab, ...]
    simulators: tuple[Declaration, ...]

    @property
    def title(self) -> str:
        return self.lesson.title if self.lesson else spelled(self.slug)


def _lab(path: Path) -> Lab:
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    words = "".join(cells[0]["source"]) if cells else ""
    heading = re.search(r"^# (.+)$", words, re.M)
    return Lab(f"{path.parent.name}/{path.stem}", heading[1] if heading else path.stem)


def topics(root: Path) -> list[Topic]:
    table = ROW.findall((root / "README.md").read_text(encoding="utf-8"))
    by_slug = {lesson.slug: lesson for lesson in lessons(root / "course")}
    found = every()
    if unknown := {d.slug for d in found} - {slug for _, slug, _ in table}:
        raise ValueError(
            f"a simulator's topic must be in README's table, got {', '.join(sorted(unknown))}; add its row"
        )
    return [
        Topic(
            number,
            slug,
            question,
            by_slug.get(slug),
            tuple(_lab(path) for path in sorted((root / "labs").glob(f"{number}_{slug}/*.ipynb"))),
            tuple(d for d in found if d.slug == slug),
        )
        for number, slug, question in table
    ]
