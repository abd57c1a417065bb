"""Check that every relative link in a text or a notebook's text leads to an existing file."""

import re
from pathlib import Path

from .tree import files

LINK = re.compile(
    r"\]\((?!https?:|#|mailto:)([^)#\s]+)(?:#[^)\s]*)?\)|<img[^>]+src=\"(?!https?:|data:)([^\"]+)\""
)
FENCE = re.compile(r"^(`{3,}).*?^\1\s*$", re.M | re.S)


def _target(root: Path, path: Path, link: str) -> Path:
    """Return a link's target. Copies in work/ count as the labs, and a notebook is in its text's folder."""
    place = (path.parent / link).resolve()
    if place.is_relative_to(root / "work"):
        place = root / "labs" / place.relative_to(root / "work")
    if place.suffix == ".ipynb" and not place.is_relative_to(root / "labs"):
        return place.with_suffix(".md")
    return place


def check(root: Path) -> list[str]:
    said, root = [], root.resolve()
    for path in files(root):
        if path.suffix != ".md":
            continue
        text = FENCE.sub(lambda match: "\n" * match[0].count("\n"), path.read_text(encoding="utf-8"))
        for match in LINK.finditer(text):
            link = match[1] or match[2]
            if not _target(root, path, link).exists():
                line = text.count("\n", 0, match.start()) + 1
                said.append(f"{path.relative_to(root).as_posix()}:{line}: links {link}, which is not there")
    return said
