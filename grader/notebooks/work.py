"""Copy labs/ to work/, the learner's own copy. An existing file is never overwritten. If Triton has no wheel, on
macOS and Windows, its Python files are fetched too, since the kernel labs import them."""

import hashlib
import importlib.util
import json
import shutil
from pathlib import Path

from grader.box import systems

ROOT = Path(__file__).parents[2]
STAMP = ".copied.json"  # path -> hash of the lab as it was copied
SKIPPED = {".ipynb_checkpoints"}


def _hash(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def copy(root: Path) -> list[str]:
    """Copy missing files. Return the labs that have changed since they were copied."""
    labs, work = root / "labs", root / "work"
    work.mkdir(exist_ok=True)
    (work / "exchange").mkdir(exist_ok=True)
    stamp = work / STAMP
    copied = json.loads(stamp.read_text(encoding="utf-8")) if stamp.exists() else {}
    said, new = [], 0
    for source in sorted(
        path for path in labs.rglob("*") if path.is_file() and not SKIPPED & set(path.parts)
    ):
        name = source.relative_to(labs).as_posix()
        target, now = work / name, _hash(source)
        if not target.exists():
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(source, target)
            copied[name], new = now, new + 1
        elif copied.setdefault(name, _hash(target)) != now and _hash(target) != now:
            said.append(_newer(name, untouched=_hash(target) == copied[name]))
    stamp.write_text(json.dumps(copied, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    return [f"copied {new} files of labs/ to work/"] * (new > 0) + said


def _newer(name: str, untouched: bool) -> str:
    if untouched:
        return f"labs/{name} has changed since you got work/{name}, in which you have changed nothing. Delete yours to get the new version"
    return f"labs/{name} is newer than your work/{name}, which stays. Rename yours to get the new version"


def with_triton() -> list[str]:
    """Get Triton's Python files if they are missing and no wheel brings them. Return how that went."""
    if systems.has_tritons_wheel() or importlib.util.find_spec("triton"):
        return []
    from tilescope import python_of_triton

    print("lab: getting Triton's Python files out of its wheel for Linux, 198 MB, once", flush=True)
    try:
        python_of_triton.install()
    except python_of_triton.NotInstalled as error:
        return [f"{error}. Everything except the kernel labs works without it"]
    return [
        f"kernels are lowered in Python here and interpreted: {systems.name()} has no compiler of Triton's. "
        "Parts that it judges stay open until hand-in"
    ]


def main(argv: list[str]) -> int:
    for line in [*copy(ROOT), *with_triton()]:
        print(f"lab: {line}", flush=True)
    return 0
