"""What a tab's Python needs to judge a topic's labs, as one zip: tilescope, the judge, the questions, Triton's own Python.

Solutions, known wrong answers and tuned kernels stay out: the rest is what the student edition holds.
"""

import importlib.util
import io
import zipfile
from pathlib import Path

from grader.places import ROOT
from grader.release import recording
from grader.release.allowed import allowed
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
NO_CONCEPTS = b'"""Questions in numpy, which have no page yet."""\n\nQUESTIONS = ()\nSHORTCUTS = {}\n'
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
    held, found = recording.modules(root), {}
    for room in ROOMS:
        for path in sorted((root / room).rglob("*.py")):
            name = path.relative_to(root).as_posix()
            if not allowed(name) or name.startswith(LEFT_OUT) or not of(name, slugs):
                continue
            source = path.read_text(encoding="utf-8")
            if name.startswith("grader/topics/") and name.endswith("_wrong.py"):
                source = emptied(source)
            found[name] = source.encode()
    return found | {name: NO_CONCEPTS for name in held if of(name, slugs)}


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
