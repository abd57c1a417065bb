"""Make a student edition, in memory first. A file that would not run there is refused before a byte is written."""

import os
import shutil
import tempfile
from collections.abc import Callable
from fnmatch import fnmatch
from pathlib import Path

from grader.questions import recorded
from grader.release import recording
from grader.release.manifest import allowed
from grader.release.readme import readme
from grader.release.strip_edits import emptied
from grader.tools.gates import tree

AGENTS = Path(__file__).with_name("student_agents.txt")  # makes a coding assistant a tutor
MISTAKES = "grader/topics/*mistakes*.py"


def dotted(path: str) -> str:
    return path.removesuffix(".py").replace("/", ".")


def path_of(module: str) -> str:
    return module.replace(".", "/") + ".py"


class Refused(ValueError):
    """Why no edition is made, and what to do."""


def make(root: Path, say: Callable[[str], None] = lambda line: None) -> dict[str, bytes]:
    """Every file of the edition by its path."""
    if not any(root.glob("labs/*/*.ipynb")):
        raise Refused("labs/ must hold the labs, got none. Run python -m grader build")
    held = recording.numpy_questions()
    names = [path.relative_to(root).as_posix() for path in tree.files(root)]
    files = {
        name: (root / name).read_bytes()
        for name in sorted(names)
        if allowed(name) and (os.path.dirname(name) not in held or name.endswith("/__init__.py"))
    }
    rows = {dotted(name): files[name].decode() for name in files if fnmatch(name, MISTAKES)}
    files |= {path_of(name): text.encode() for name, text in emptied(rows).items()}
    with tempfile.TemporaryDirectory(prefix="recorded_") as folder:
        for place, question in held.items():
            say(f"recording {question.id}")
            source = (root / place / "question.py").read_text(encoding="utf-8")
            files[f"{place}/question.py"] = recording.module(source, question).encode()
            path = Path(folder) / f"{question.name}.npz"
            recorded.write(path, recording.record(question))
            files[f"{place}/{recorded.FOLDER}/{path.name}"] = path.read_bytes()
    files["README.md"] = readme((root / "README.md").read_text(encoding="utf-8"), set(files)).encode()
    files["AGENTS.md"] = AGENTS.read_bytes()
    return files


def left_behind(folder: Path) -> list[str]:
    """Return modules that the edition imports, at the top or later, and doesn't have."""
    said = []
    for path in tree.modules(folder, *tree.PACKAGES):
        for one in tree.imports(path, folder):
            if one.top in tree.PACKAGES and not _there(one.name, folder):
                said.append(f"{path.relative_to(folder).as_posix()}:{one.line} needs {one.name}")
    return said


def _there(name: str, folder: Path) -> bool:
    """A module, or a name that a module defines."""
    *package, last = name.split(".")
    stem = folder.joinpath(*package, last)
    if stem.with_suffix(".py").exists() or (stem / "__init__.py").exists():
        return True
    inside = folder.joinpath(*package)
    return inside.with_suffix(".py").exists() or last in _says(inside / "__init__.py")


def _says(path: Path) -> str:
    return path.read_text(encoding="utf-8") if path.exists() else ""


def require_empty(target: Path) -> None:
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise Refused(f"DIR must be new or empty, got {target}, which holds something. Name another folder")


def put(files: dict[str, bytes], target: Path) -> None:
    """Write them all or nothing. `target` is new or empty."""
    require_empty(target)
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".edition_", dir=target.parent) as folder:
        made = Path(folder) / "edition"
        for name, content in files.items():
            path = made / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        (made / ".ci/run").chmod(0o755)
        if missing := left_behind(made):
            raise Refused(
                f"{missing[0]}, which is not among what a student edition may hold. If it answers no question, "
                "name it in grader/release/manifest.py"
            )
        if target.exists():
            target.rmdir()
        shutil.move(made, target)
