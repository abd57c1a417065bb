"""requirements.in, requirements.lock, environment.yml and the imports say the same."""

import re
import sys
from pathlib import Path

from .tree import PACKAGES, file_of_bare_name, imports, modules

PIN = re.compile(r"^([A-Za-z0-9._-]+)==([^\s;]+)\s*(?:;\s*(.+?))?\s*$")
# Where the name of an import is not the name of its package.
PACKAGE_OF = {
    "PIL": "pillow",
    "markdown_it": "markdown-it-py",
    "yaml": "pyyaml",
    "jwt": "pyjwt",
    "dateutil": "python-dateutil",
    "websocket": "websocket-client",
    "_pytest": "pytest",
    "ltiauthenticator": "jupyterhub-ltiauthenticator",
}


def pins(path: Path) -> tuple[dict[str, str], list[str]]:
    """(name -> version, the lines that pin nothing)"""
    found, loose = {}, []
    for raw in path.read_text(encoding="utf-8").splitlines():
        line = raw.partition("#")[0].strip()
        match = PIN.match(line)
        if match:
            found[match[1].lower().replace("_", "-").replace(".", "-")] = match[2]
        elif line:
            loose.append(line)
    return found, loose


def _environment(root: Path) -> list[str]:
    """environment.yml holds a Python, pip, the lock and the project, and no pin of its own."""
    path = root / "environment.yml"
    if not path.exists():
        return ["environment.yml must be there for conda users, got none"]
    entries = [line.partition("#")[0].strip() for line in path.read_text(encoding="utf-8").splitlines()]
    items = [entry[2:].strip() for entry in entries if entry.startswith("- ")]
    least = re.search(
        r'requires-python = ">=([\d.]+)"', (root / "pyproject.toml").read_text(encoding="utf-8")
    )[1]
    wanted = {f"python>={least}", "pip", "pip:", "-r requirements.lock", "-e ."}
    packages = {item for item in items if item not in ("conda-forge", "nodefaults")}
    said = [f"environment.yml must have {item!r}, got none" for item in sorted(wanted - packages)]
    extra = sorted(packages - wanted)
    return said + [f"environment.yml must leave {item!r} to requirements.lock. Remove it" for item in extra]


def _imported(root: Path, locked: dict[str, str]) -> list[str]:
    """Check that our modules' imports at load time are in the lock, in their own folder, in the standard library, or
    ours."""
    ours = {*PACKAGES, "conftest"}
    said = []
    for path in modules(root, *PACKAGES, tests=True):
        own = path.with_name(
            "requirements.txt"
        )  # of a folder that runs in an environment with more, as the hub does
        there = {**locked, **(pins(own)[0] if own.exists() else {})}
        for one in imports(path, root):
            package = PACKAGE_OF.get(one.top, one.top.lower().replace("_", "-"))
            if one.lazy or one.top in ours or one.top in sys.stdlib_module_names or package in there:
                continue
            if not file_of_bare_name(path, one.top, root):
                where = f"{path.relative_to(root).as_posix()}:{one.line}"
                said.append(
                    f"{where}: imports {one.top}, which requirements.lock has not. Add it to requirements.in"
                )
    return said


def check(root: Path) -> list[str]:
    wanted, loose = pins(root / "requirements.in")
    locked, loose_locked = pins(root / "requirements.lock")
    said = [f"requirements.in: {line!r} must be pinned with ==" for line in loose]
    said += [f"requirements.lock: {line!r} must be pinned with ==. Run make lock" for line in loose_locked]
    for name, version in sorted(wanted.items()):
        if locked.get(name) != version:
            got = locked.get(name, "nothing")
            said.append(f"requirements.lock must have {name}=={version}, got {got}. Run make lock")
    for line in (root / "requirements.in").read_text(encoding="utf-8").splitlines():
        if PIN.match(line.partition("#")[0].strip()) and line.startswith(tuple(wanted)) and "==" not in line:
            said.append(f"requirements.in: {line!r} must be pinned with ==")
    return said + _environment(root) + _imported(root, locked)
