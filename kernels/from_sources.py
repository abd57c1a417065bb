"""Say where the course teaches each item of its sources, with one table, its page, and its mistakes.

A row of course/from_the_sources.psv names an item, a page, a heading of that page, and words of the heading's section.
For the glossary, the heading is an entry's anchor, such as #nope.
"""

import csv
import re
from dataclasses import dataclass
from pathlib import Path

TABLE, PAGE = "from_the_sources.psv", "from_the_sources.md"
COLUMNS = ("topic", "item", "page", "heading", "says")
HEAD = """# Where the sources are taught

This course grew out of five documents and aims to leave out nothing that they teach. The tables list every item that could
have been lost and the section that teaches it. An automatic check fails if no section teaches an item, or if the section no
longer contains the item's words.

Errors in the sources themselves are corrected on [a page of lesson 07](07_next_bottleneck/j_errata.ipynb).
"""
FENCE = re.compile(r"^(`{3,}|~{3,}).*?^\1\s*$", re.M | re.S)


@dataclass(frozen=True)
class Item:
    topic: str
    item: str
    page: str  # 00_roofline/appendix, or glossary
    heading: str
    says: str
    line: int

    @property
    def anchor(self) -> str:
        """Return the heading as JupyterLab and the site name it in a link."""
        return self.heading[1:] if self.heading.startswith("#") else self.heading.replace(" ", "-")


def items(course: Path) -> list[Item]:
    """Return the table's rows. Refuse a row with too few or too many columns."""
    rows = list(csv.reader((course / TABLE).read_text(encoding="utf-8").splitlines(), delimiter="|"))
    if tuple(rows[0]) != COLUMNS:
        raise ValueError(f"{TABLE} must begin with {'|'.join(COLUMNS)}, got {'|'.join(rows[0])}; restore it")
    for line, row in enumerate(rows, 1):
        if row and len(row) != len(COLUMNS):
            raise ValueError(f"{TABLE}:{line} must have {len(COLUMNS)} columns, got {len(row)}; see line 1")
    return [Item(*row, line) for line, row in enumerate(rows[1:], 2) if row]


def section(text: str, heading: str) -> str | None:
    """Return a section's words without its heading, up to the next heading, or nothing if there is none."""
    if heading.startswith("#"):
        found = re.search(rf'^<a id="{re.escape(heading[1:])}"></a>(.*)$', text, re.M)
        return found and found[1]
    kept = FENCE.sub(
        lambda block: re.sub(r"(?m)^#", " #", block[0]), text
    )  # a comment in code isn't a heading
    found = re.search(rf"^#+ {re.escape(heading)}\s*$(.*?)(?=^#+ |\Z)", kept, re.M | re.S)
    return found and found[1]


def complaints(course: Path) -> list[str]:
    """Return the mistakes: an item listed twice or without a page, a missing page, heading or quoted words."""
    said, met = [], set()
    for one in items(course):
        where, path = f"course/{TABLE}:{one.line}: {one.item or 'a row'}", course / f"{one.page}.md"
        if not one.item or one.item in met:
            said.append(f"{where} must be named once; name the item")
        elif not one.page or not path.is_file():
            said.append(f"{where} names a page that doesn't exist, {one.page or '(empty)'}")
        elif (words := section(path.read_text(encoding="utf-8"), one.heading)) is None:
            said.append(f"{where}: {one.page} has no heading {one.heading!r}")
        elif " ".join(one.says.lower().split()) not in " ".join(words.lower().split()):
            said.append(f"{where}: the section {one.heading!r} of {one.page} does not say {one.says!r}")
        met.add(one.item)
    return said


def page(course: Path, titles: dict[str, str]) -> str:
    """Return the page's text, item by item in the topics' order. `titles` are the topics' names."""
    parts = [HEAD]
    for topic in dict.fromkeys(one.topic for one in items(course)):
        rows = [
            f"| {one.item} | [{one.heading if not one.heading.startswith('#') else 'Glossary'}]"
            f"({one.page}.ipynb#{one.anchor}) |"
            for one in items(course)
            if one.topic == topic
        ]
        parts.append("\n".join([f"## {titles[topic]}", "", "| item | section |", "|---|---|", *rows, ""]))
    return "\n\n".join(parts)
