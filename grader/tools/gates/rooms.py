"""README's table of topics and the folders on disk are the same list."""

import re
from dataclasses import dataclass
from pathlib import Path

from .tree import is_topic

ROW = re.compile(r"^\|\s*(\d\d)\s*\|\s*`(\w+)`\s*\|(.*)\|\s*$", re.M)
LINK = re.compile(r"\]\(([^)#\s]+)[^)]*\)")
ROOMS = ("course", "solutions", "labs", "kernels", "widgets", "checks")
LABELLED = re.compile(r"^(\d\d)_([a-z]\w*)$")


@dataclass(frozen=True)
class Topic:
    number: str
    slug: str
    rest: str  # the question and the links, as written

    def place(self, room: str, root: Path) -> str:
        """Return where a topic's folder is. A lesson is one text, or a folder of pages."""
        label = f"{self.number}_{self.slug}"
        return {
            "course": f"course/{label}" if (root / f"course/{label}").is_dir() else f"course/{label}.md",
            "kernels": f"kernels/{self.slug}",
            "widgets": f"widgets/{self.slug}",
            "checks": f"grader/topics/{self.slug}",
        }.get(room, f"{room}/{label}")

    def none(self, room: str) -> bool:
        """Return the topic's reason for lacking a folder, 'labs: none, because ...' in the row."""
        return re.search(rf"\b{room}: none, [^;|]{{5,}}", self.rest) is not None

    @property
    def to_come(self) -> bool:
        return "to come" in self.rest


def _stands(path: Path) -> bool:
    """A room is there when it holds more than a package's empty front door."""
    if path.is_file():
        return True
    return path.is_dir() and any(
        p.name not in ("__init__.py", "__pycache__", ".ipynb_checkpoints") for p in path.iterdir()
    )


def topics(root: Path) -> list[Topic]:
    return [
        Topic(number, slug, rest)
        for number, slug, rest in ROW.findall((root / "README.md").read_text("utf-8"))
    ]


def _row(root: Path, topic: Topic) -> list[str]:
    said = []
    question = topic.rest.split("|")[0].strip()
    if not question.endswith("?"):
        said.append(f"README.md: {topic.slug} must have its question in the third column, got {question!r}")
    links = LINK.findall(topic.rest)
    said += [
        f"README.md: {topic.slug} links {link}, which is not there"
        for link in links
        if not (root / link).exists()
    ]
    for room in ROOMS:
        place = topic.place(room, root)
        linked = any(link.rstrip("/").startswith(place.removesuffix(".md")) for link in links)
        if not _stands(root / place):
            if not topic.none(room) and not topic.to_come:
                said.append(
                    f"README.md: {topic.slug} has no {place}. Build it or write '{room}: none, <reason>'"
                )
        elif topic.none(room):
            said.append(f"README.md: {topic.slug} says '{room}: none', but {place} is there")
        elif not linked:
            said.append(f"README.md: {topic.slug} must link {place}")
    return said


def _on_disk(root: Path) -> set[tuple[str | None, str, str]]:
    """Return (number or None, slug, path) of every folder that looks like a topic's."""
    found = set()
    for path in [
        *root.glob("course/*.md"),
        *root.glob("course/*/"),
        *root.glob("solutions/*/"),
        *root.glob("labs/*/"),
    ]:
        if match := LABELLED.match(path.stem):
            found.add((match[1], match[2], path.relative_to(root).as_posix()))
    packages = [path for path in [*root.glob("kernels/*/"), *root.glob("widgets/*/")] if is_topic(path)]
    checks = [path.parent for path in root.glob("grader/topics/*/lab.py")]
    return found | {(None, path.stem, path.relative_to(root).as_posix()) for path in packages + checks}


def check(root: Path) -> list[str]:
    if not (root / "README.md").exists():
        return ["README.md must hold the table of topics, got no file"]
    table = topics(root)
    if not table:
        return ["README.md must hold a table | no. | `slug` | question | links |, got none"]
    numbers = {topic.slug: topic.number for topic in table}
    said = [line for topic in table for line in _row(root, topic)]
    if len(numbers) != len(table) or len(set(numbers.values())) != len(table):
        said.append("README.md: a number or a slug is in the table twice")
    for number, slug, place in sorted(_on_disk(root), key=str):
        if slug not in numbers:
            said.append(f"{place}: {slug} is not in README's table. A topic has one name everywhere")
        elif number and number != numbers[slug]:
            said.append(f"{place}: must be numbered {numbers[slug]} as in README's table, got {number}")
    return said
