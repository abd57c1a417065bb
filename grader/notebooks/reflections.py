"""Show what a good answer to each reflection has, folded, for those who learn alone (python -m grader reflections
[LAB]).

The answers are those of solutions/, so a student edition has none. In a class a person grades reflections.
"""

import argparse
import html
import sys
from pathlib import Path

import nbformat
from markdown_it import MarkdownIt

from grader.paths import ROOT, from_here
from grader.verdicts import WRONG_USAGE

PLACE = Path("work/reflections")  # below the course's root, where git ignores it
PAGE = """<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark"><title>{title}</title>
<style>body {{ max-width: 46em; margin: 2em auto; padding: 0 1em; font: 16px/1.55 system-ui, sans-serif; }}
summary {{ cursor: pointer; font-weight: 600; }} details {{ margin: 1em 0 3em; padding: .6em 1em; border: 1px solid; border-radius: 8px; }}
td, th {{ padding: .2em .8em .2em 0; text-align: left; vertical-align: top; }}</style></head>
<body><h1>{title}</h1>
<p>Write your own answer first. Then compare: does yours have the same numbers, the same reasons, and something that could prove it
wrong? Other words and other good choices are fine.</p>
{body}
</body></html>
"""


def main(argv: list[str], root: Path = ROOT) -> int:
    parser = argparse.ArgumentParser(prog="python -m grader reflections", description=__doc__)
    parser.add_argument(
        "lab", nargs="?", metavar="LAB", help="a folder of labs/, such as 01_gemm_tiling, by default all"
    )
    wants = parser.parse_args(argv)
    labs = sorted(path.name for path in root.glob("solutions/*/") if any(path.glob("*.ipynb")))
    if not labs:
        print(
            "solutions/ must be here, got none. A student edition leaves reflections to the instructor",
            file=sys.stderr,
        )
        return WRONG_USAGE
    if wants.lab and wants.lab not in labs:
        print(f"lab must be one of {', '.join(labs)}, got {wants.lab!r}", file=sys.stderr)
        return WRONG_USAGE
    for lab in [wants.lab] if wants.lab else labs:
        path = root / PLACE / f"{lab}.html"
        path.parent.mkdir(parents=True, exist_ok=True)
        found = [one for book in sorted((root / "solutions" / lab).glob("*.ipynb")) for one in of(book)]
        path.write_text(page(lab, found), encoding="utf-8")
        print(f"{from_here(path)}: {len(found)} {'reflection' if len(found) == 1 else 'reflections'}")
    return 0


def of(book: Path) -> list[tuple[str, str, str]]:
    """Return (notebook, question, a good answer) for each answer in prose that a person grades."""
    found, asked = [], ""
    for cell in nbformat.read(book, as_version=4).cells:
        mark = cell.metadata.get("nbgrader", {})
        if cell.cell_type == "markdown" and mark.get("solution") and mark.get("grade"):
            found.append((book.stem, asked, cell.source))
        elif cell.cell_type == "markdown":
            asked = cell.source
    return found


def page(lab: str, found: list[tuple[str, str, str]]) -> str:
    read = MarkdownIt("commonmark", {"html": False}).enable("table").render
    body = "\n".join(
        f"<h2>{html.escape(notebook)}</h2>\n{read(asked)}\n<details><summary>A good answer</summary>\n{read(answer)}</details>"
        for notebook, asked, answer in found
    )
    return PAGE.format(title=html.escape(f"{lab}: reflections"), body=body)
