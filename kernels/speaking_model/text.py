"""Gather the sentences that the speaking model learns from (python -m kernels.speaking_model.text FILE).

Nothing is downloaded. The sentences are the course's own lessons, and the documentation strings of Python and of
packages that the course installs anyway. SOURCES names each with its licence.
"""

import ast
import pydoc_data.topics
import re
import sys
import sysconfig
import warnings
from collections.abc import Iterator
from importlib import util
from pathlib import Path

from kernels import texts

COURSE = Path(__file__).parents[2] / "course"
# Where the sentences come from -> the licence that they are under.
SOURCES = {
    "the course's lessons": "CC-BY-4.0",
    "python": "PSF-2.0",
    "numpy": "BSD-3-Clause",
    "torch": "BSD-3-Clause",
    "sympy": "BSD-3-Clause",
    "networkx": "BSD-3-Clause",
    "sqlalchemy": "MIT",
    "matplotlib": "Matplotlib (in the style of PSF-2.0)",
    "dask": "BSD-3-Clause",
    "distributed": "BSD-3-Clause",
    "IPython": "BSD-3-Clause",
    "jupyter_server": "BSD-3-Clause",
    "traitlets": "BSD-3-Clause",
}
TOLD_TWICE = "the course's lessons"  # the model is to speak of kernels
SENTENCE = re.compile(r"[A-Z][A-Za-z0-9 ,;:'()\"/+%-]{20,300}[.!?:]")
LEAST_WORDS, MOST_MARKS = 6, 0.08  # a sentence has words, and almost nothing else


def plain(text: str) -> str:
    """Return text without the marks of reStructuredText and Markdown."""
    text = re.sub(r":[a-z:]+:`~?\.?([^`<]*?)(?: <[^`]*>)?`", r"\1", text)
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", text)
    text = re.sub(r"[`*]+", "", text).replace("\u2019", "'").replace("\u201c", '"').replace("\u201d", '"')
    return " ".join(text.split())


def sentences(text: str) -> Iterator[str]:
    """Yield each paragraph's sentences as one line, if all its words look like English."""
    for paragraph in re.split(r"\n\s*\n", text):
        if paragraph.lstrip().startswith((">>>", "|", "#", "```", "..", "- ", "<")):
            continue
        kept = []
        for one in re.split(r"(?<=[.!?]) +(?=[A-Z])", plain(paragraph)):
            marks = sum(not (c.isalpha() or c in " ,.'") for c in one)
            if SENTENCE.fullmatch(one) and len(one.split()) >= LEAST_WORDS and marks <= MOST_MARKS * len(one):
                kept.append(one)
        if kept:
            yield " ".join(kept)


def docstrings(files: list[Path]) -> Iterator[str]:
    for path in files:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                tree = ast.parse(path.read_text(encoding="utf-8", errors="ignore"))
        except (SyntaxError, ValueError, RecursionError):
            continue
        for node in ast.walk(tree):
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
                yield ast.get_docstring(node) or ""


def of_source(name: str) -> Iterator[str]:
    """Yield the paragraphs of one source, or none if its package isn't installed."""
    if name == "the course's lessons":
        for pages in texts.lessons(COURSE).values():
            yield from (page.read_text(encoding="utf-8") for page in pages)
        return
    if name == "python":
        root = Path(sysconfig.get_path("stdlib"))
        yield from pydoc_data.topics.topics.values()
        yield from docstrings(sorted(p for p in root.rglob("*.py") if "site-packages" not in p.parts))
        return
    found = util.find_spec(name)
    if found is not None:
        yield from docstrings(sorted(Path(found.submodule_search_locations[0]).rglob("*.py")))


def gather() -> tuple[str, dict[str, int]]:
    """Return the whole text, a paragraph a line, and how many characters each source gave."""
    seen, lines, sizes = set(), [], {}
    for name in SOURCES:
        new = [line for text in of_source(name) for line in sentences(text)]
        new = [line for line in dict.fromkeys(new) if line not in seen]
        seen.update(new)
        sizes[name] = sum(map(len, new))
        lines += new * (2 if name == TOLD_TWICE else 1)
    return "\n".join(lines) + "\n", sizes


def main(argv=None) -> int:
    argv = sys.argv[1:] if argv is None else argv
    if len(argv) != 1:
        print(__doc__)
        return 64
    text, sizes = gather()
    Path(argv[0]).write_text(text, encoding="ascii", errors="ignore")
    print("\n".join(f"{size:>9} characters, {SOURCES[name]}: {name}" for name, size in sizes.items()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
