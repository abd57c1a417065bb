"""Compare the installed packages with requirements.lock, and look for other packages under our names."""

import json
import platform
import sys
from importlib import metadata
from pathlib import Path

from grader.tools.gates import dependencies

from .row import ROOT, Row, answer, missing, note, ok

OURS = ("kernels", "widgets", "tilescope", "grader")
OLDEST_PYTHON = [3, 11]
NOTEBOOK_PACKAGES = ("jupyterlab", "ipywidgets", "anywidget", "nbgrader", "jupytext")


def installed(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def pins() -> dict[str, str]:
    """Read requirements.lock, if it is in the checkout."""
    path = ROOT / "requirements.lock"
    return dependencies.pins(path)[0] if path.exists() else {}


def python() -> Row:
    version = platform.python_version()
    if list(sys.version_info[:2]) < OLDEST_PYTHON:
        return missing("Python", version, "the course needs 3.11 or newer")
    system, chip = platform.system(), platform.machine()
    if (system, chip) == ("Darwin", "x86_64"):
        return note(
            "Python",
            f"{version} on an Intel Mac",
            "the lock has no packages for it. Use the labs in a browser",
        )
    return ok("Python", f"{version} on {system} {chip}")


def pinned(package: str, locked: dict[str, str], advice: str, needed: bool = False) -> Row:
    version, wanted = installed(package), locked.get(package)
    if version is None:
        return (missing if needed else note)(package, "not installed", advice)
    if wanted and version.partition("+")[0] != wanted:
        return note(package, version, f"the course is pinned to {wanted}. Run make setup to install it")
    return ok(package, version)


def notebooks(locked: dict[str, str]) -> Row:
    here = {name: installed(name) for name in NOTEBOOK_PACKAGES}
    gone = [name for name, version in here.items() if version is None]
    if len(gone) == len(here):
        return note(
            "notebooks", "no Jupyter here", "kernels and grader run. Run make setup for the notebooks"
        )
    if gone:
        return missing("notebooks", f"without {', '.join(gone)}", "make setup installs them")
    other = [f"{name} {version}" for name, version in here.items() if locked.get(name, version) != version]
    if other:
        return note("notebooks", ", ".join(other), "not the pinned versions. Run make setup to install them")
    return ok("notebooks", f"JupyterLab {here['jupyterlab']}, nbgrader {here['nbgrader']}")


def _origins() -> dict[str, str]:
    """Return where a fresh Python, started in no folder of ours, finds our packages."""
    look = "import importlib.util as u, json, sys; f = {n: u.find_spec(n) for n in sys.argv[1:]}"
    look += "; print(json.dumps({n: s.origin or '' for n, s in f.items() if s}))"
    try:
        return json.loads(answer(sys.executable, "-P", "-c", look, *OURS, seconds=5) or "{}")
    except ValueError:
        return {}


def shadowed() -> list[Row]:
    """Return other packages, or files next to the learner's notebooks, that bear our names."""
    rows, origins = [], _origins()
    for name, origin in origins.items():
        if Path(origin).resolve() != (ROOT / name / "__init__.py").resolve():
            rows.append(missing("imports", f"{name} is taken from {origin or 'another folder'}", _rid(name)))
    for path in sorted((ROOT / "work").glob("**/*.py")):
        if path.stem in OURS or path.parent.name in OURS:
            rows.append(missing("imports", f"{path.relative_to(ROOT)} hides our package", "rename that file"))
    if not rows and len(origins) < len(OURS):
        rows.append(note("imports", "found from this folder only", "make setup installs our packages"))
    return rows or [ok("imports", "kernels, widgets, tilescope and grader are this checkout's")]


def _rid(name: str) -> str:
    owners = metadata.packages_distributions().get(name, [])
    others = sorted(set(owners) - {"tile-by-tile"})
    return f"pip uninstall {' '.join(others)}" if others else "remove it, or run make clean and make setup"
