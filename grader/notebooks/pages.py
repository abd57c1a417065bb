"""Add to a lesson's page its position and reading time above, and the way on below."""

import math
import re
from pathlib import Path

import nbformat

from kernels import texts

WORDS_A_MINUTE = 200
TODO = "Now you"  # the heading under which a page ends in something to do
TAG = "way"  # of the two cells that are added
LINK = re.compile(r"\]\([^)\s]*\)|<[^>\n]*>")


def title(words: str) -> str:
    """Return a text's first heading."""
    found = re.search(r"^# (.+)$", words, re.M)
    return found[1].strip() if found else ""


def minutes(words: str) -> int:
    """Return how long a text takes to read, code and tables included, in whole minutes."""
    return max(1, math.ceil(len(LINK.sub("]", words).split()) / WORDS_A_MINUTE))


def complaints(path: Path, words: str) -> list[tuple[int, str]]:
    """Return [(line, what)] of a page that can't be found, has no title or ends in nothing to do."""
    said, last = [], words.count("\n")
    if not texts.PAGE.fullmatch(path.stem):
        said.append((1, f"a page must be named a_title, review or appendix, got {path.stem}. Rename it"))
    if not title(words):
        said.append((1, "a page must have a title, a line '# Title', got none"))
    heads = re.findall(r"^## (.+)$", words, re.M)
    if not heads or heads[-1].strip() != TODO:
        got = f"'## {heads[-1]}'" if heads else "no section"
        said.append((last, f"a page must end in '## {TODO}', something to do, got {got}"))
    return said


def add_way(notebook, root: Path, path: Path, words: str) -> None:
    """Put a page's position and reading time above its text, and a link to the next page below the text."""
    pages = texts.pages((root / path).parent)
    at, number = [page.name for page in pages].index(path.name), path.parent.name[:2]
    place = f"Lesson {number}, page {at + 1} of {len(pages)}"
    head = f"{place} · about {minutes(words)} min to read · [all lessons](../start.ipynb)"
    if at + 1 < len(pages):
        following = pages[at + 1]
        name = title(following.read_text(encoding="utf-8")) or following.stem
        foot = f"**Next page:** [{name}]({following.stem}.ipynb)"
    else:
        foot = f"This is the last page of lesson {number}. [All lessons](../start.ipynb)"
    cells = [nbformat.v4.new_markdown_cell(said, metadata={"tags": [TAG]}) for said in (head, foot)]
    cells[0].id, cells[1].id = "page", "next_page"
    notebook.cells = [cells[0], *notebook.cells, cells[1]]
