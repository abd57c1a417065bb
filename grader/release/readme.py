"""Write a student edition's README.md: its own words, and the course's table of topics without the folders left out."""

import re
from pathlib import Path

WORDS = Path(__file__).with_name("student_readme.txt")
ROW = re.compile(r"^\| (?:no\.|-|\d\d).*\|$", re.M)
LINK = re.compile(r"\[([^\]]+)\]\(([^)]+)\)")


def readme(whole: str, files: set[str]) -> str:
    """`whole` is the course's README, `files` what the edition holds."""
    rows = [
        _row(row, files)
        for row in whole.splitlines()
        if row.startswith(("| no.", "|---|---|---|---|")) or ROW.match(row)
    ]
    return WORDS.read_text(encoding="utf-8").replace("{topics}", "\n".join(rows))


def _row(row: str, files: set[str]) -> str:
    """Without links to what is not there, and without the rooms that a learner has no use for."""
    parts = [part for part in row.split(" · ")]
    kept = [part for part in parts if all(_shown(link, files) for _, link in LINK.findall(part))]
    ends = "" if kept[-1].endswith("|") else " |"
    return " · ".join(kept) + ends


def _shown(link: str, files: set[str]) -> bool:
    room = link.split("/")[0]
    return room not in ("kernels", "grader", "solutions") and any(name.startswith(link) for name in files)
