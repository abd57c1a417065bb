"""What a tab's Python needs to judge a topic's labs, as one zip: tilescope, the judge, the questions, Triton's own Python.

Solutions, known wrong answers and tuned kernels stay out: the rest is what the student edition holds.
"""

import importlib.util
import io
import zipfile
from fnmatch import fnmatch
from pathlib import Path

from grader import questions
from grader.places import ROOT
from grader.questions import KernelQuestion
from grader.release import recording
from grader.release.allowed import allowed
from grader.release.edition import MISTAKES, dotted, path_of
from grader.release.emptied import emptied

ROOMS = ("grader", "kernels", "tilescope")
LEFT_OUT = (
    "grader/box/attacks/",
    "grader/bench/inside/",
    "grader/compiler/inside/",
    "grader/tools/",
    "tilescope/tests/",
)
OF_TRITON = ("_C", "profiler", "tools/triton_to_gluon_translater")
INSIDE = ("grader/site/__init__.py", "grader/site/inside.py")
DATE = (2026, 1, 1, 0, 0, 0)  # the same bytes from every build


def bundle(slugs: list[str], root: Path = ROOT) -> bytes:
    """Zip what judges the kernel questions of these topics."""
    files = triton() | ours(slugs, root)
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as made:
        for name in sorted(files):
            made.writestr(zipfile.ZipInfo(name, DATE), files[name], zipfile.ZIP_DEFLATED)
    return written.getvalue()


def ours(slugs: list[str], root: Path) -> dict[str, bytes]:
    """Take what the student edition holds, of these topics alone and of them the kernel questions."""
    held = {f"{place}/" for place in recording.numpy_questions()}
    found = {}
    for room in ROOMS:
        for path in sorted((root / room).rglob("*.py")):
            name = path.relative_to(root).as_posix()
            if allowed(name) and not name.startswith((*LEFT_OUT, *held)) and of(name, slugs):
                found[name] = path.read_text(encoding="utf-8")
    rows = {dotted(name): text for name, text in found.items() if fnmatch(name, MISTAKES)}
    found |= {path_of(module): text for module, text in emptied(rows).items()}
    for slug in slugs:
        order = tuple(one.name for one in kernel_questions(slug))
        found[f"grader/topics/{slug}/lab.py"] = (
            f'"""The kernels that a page asks for."""\n\nORDER = {order!r}\n'
        )
    for name in INSIDE:
        found[name] = (root / name).read_text(encoding="utf-8")
    return {name: text.encode() for name, text in found.items()}


def kernel_questions(slug: str) -> list[KernelQuestion]:
    every = questions.load().values()
    return [one for one in every if isinstance(one, KernelQuestion) and one.slug == slug]


def of(name: str, slugs: list[str]) -> bool:
    """Whether a file belongs to one of these topics, or to no topic at all."""
    parts = name.split("/")
    return parts[:2] != ["grader", "topics"] or len(parts) == 3 or parts[2] in slugs


def triton() -> dict[str, bytes]:
    """Triton's Python files; its compiled library and what only that serves stay out."""
    home = Path(importlib.util.find_spec("triton").origin).parent
    found = {}
    for path in home.rglob("*.py"):
        name = path.relative_to(home).as_posix()
        if not name.startswith(OF_TRITON):
            found[f"triton/{name}"] = path.read_bytes()
    return found
