"""Find files that must not leave with a student edition: changed notebooks, untracked files, lines of a solution."""

import json
import re
import subprocess
from pathlib import Path

from grader.notebooks import disk
from grader.notebooks.make import Build
from grader.release.manifest import STATED, matches

SOLUTION = re.compile(r"### BEGIN SOLUTION\n(.*?)### END SOLUTION", re.S)
MARK = re.compile(r"^\s*### (BEGIN|END) SOLUTION", re.M)
LONG = 29  # characters that make a line say which solution it is from
ROOMS = ("course/", "labs/", "widgets/", "view/")  # that an edition takes whole, whatever is in them
PICTURES = (b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff", b"GIF8")  # PNG, JPEG, GIF
WHOLE = 3  # long lines, the number that gives a solution away if all are in one file


def leaks(root: Path, built: Build, files: dict[str, bytes]) -> list[str]:
    """One sentence for each of `files`, an edition of `root`, that it must not hold.

    `built` is what `build` makes in `root`.
    """
    names = sorted(name for name in files if (root / name).is_file())
    said = _untracked(root, names) | _not_built(root, built, names)
    answers = solutions(root)
    shown = _shown_by_the_build(built, answers)
    for name in (name for name in sorted(files) if name not in said):
        if words := _holds(name, files[name], name in built.files, answers, shown):
            said[name] = words
    return [f"{name} {why}" for name, why in sorted(said.items())]


def solutions(root: Path) -> list[list[str]]:
    """The long lines of every solution, one list for each."""
    texts = (path.read_text(encoding="utf-8") for path in sorted(root.glob("solutions/*/*.md")))
    return [long for text in texts for block in SOLUTION.findall(text) if (long := _long(block.splitlines()))]


def _long(lines: list[str]) -> list[str]:
    return [line.strip() for line in lines if len(line.strip()) >= LONG]


def _not_built(root: Path, built: Build, names: list[str]) -> dict[str, str]:
    """Lessons and labs on disk that are not what their texts make."""
    there = set(names)
    said = {
        name: "is not what `python -m grader build` makes. Run that, or move the file out of the course"
        for name, content in built.files.items()
        if name in there and (root / name).read_bytes() != content
    }
    strays = set(disk.strays(root, built)) & there
    return said | dict.fromkeys(strays, "is built from no text. Move it out of the course")


def _untracked(root: Path, names: list[str]) -> dict[str, str]:
    """Return files that git doesn't track, or none without git."""
    if not (root / ".git").exists():
        return {}
    command = ["git", "-C", str(root), "ls-files", "-z", "--cached"]
    kept = set(subprocess.run(command, capture_output=True, check=True, text=True).stdout.split("\0"))
    why = "is not tracked by git. Run `git add` on it if students may have it, or move it out of the course"
    return {name: why for name in names if name not in kept}


def _shown_by_the_build(built: Build, answers: list[list[str]]) -> set[str]:
    """Lines of solutions that lessons and labs show on purpose, such as a kernel that another lab has explained."""
    secret = {line for lines in answers for line in lines}
    pages = (data for name, data in built.files.items() if name.endswith(".ipynb") and not _solution(name))
    return {line for data in pages for line in _lines(data, notebook=True) if line in secret}


def _solution(name: str) -> bool:
    return name.startswith("solutions/")


def _holds(name: str, data: bytes, is_built: bool, answers: list[list[str]], shown: set[str]) -> str:
    """Return the part of a solution that one file holds, or nothing if students may read it whole in this file."""
    try:
        lines = set(_lines(data, name.endswith(".ipynb")))
    except ValueError:
        unread = name.startswith(ROOMS) and not data.startswith(PICTURES)
        return "is neither text nor a picture, so it may hold a solution. Move it out of the course" * unread
    if any(MARK.match(line) for line in lines):
        return "holds the mark of a solution, ### BEGIN SOLUTION. Move it out of the course"
    if is_built and name.startswith("labs/"):  # the build has compared it with its own solution
        return ""
    if any(matches(name, pattern) for pattern in STATED):
        whole = [block for block in answers if len(block) >= WHOLE and lines.issuperset(block)]
        return f"holds a whole solution, with {whole[0][0]!r}. Take it out" if whole else ""
    found = next((line for block in answers for line in block if line in lines and line not in shown), "")
    return found and f"holds a line of a solution, {found!r}. Take it out"


def _lines(data: bytes, notebook: bool) -> list[str]:
    """Return the stripped lines of a text, or of the cells of a notebook. Raise ValueError for anything else."""
    text = data.decode()
    if notebook:
        cells = json.loads(text)["cells"]
        text = "\n".join("".join(cell["source"]) for cell in cells)
    return [line.strip() for line in text.splitlines()]
