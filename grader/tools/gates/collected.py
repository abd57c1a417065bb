"""Check that pytest, as configured here, reaches every test file on disk, because it leaves out folders by name."""

import os
import subprocess
import sys
from fnmatch import fnmatch
from pathlib import Path

from .tree import files

NAMES = ("test_*.py", "*_test.py")
REACHED = "reached: "
SECONDS = 900  # a guard against a hang. Collecting takes five seconds on two idle cores
ALONE = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}  # others choose no file here, and take seconds to load


def on_disk(root: Path) -> list[str]:
    found = (path.relative_to(root) for path in files(root))
    return sorted(path.as_posix() for path in found if any(fnmatch(path.name, name) for name in NAMES))


def reached(root: Path) -> tuple[list[str], str]:
    """(the files from which pytest would collect, all that it said), in a Python of its own."""
    command = [
        sys.executable,
        "-m",
        "pytest",
        "--collect-only",
        "-q",
        "-p",
        __name__,
        "-p",
        "no:cacheprovider",
    ]
    paths = [str(Path(__file__).parents[3]), os.environ.get("PYTHONPATH", "")]
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(filter(None, paths)),
        "PYTEST_ADDOPTS": "",
        **ALONE,
    }
    done = subprocess.run(
        command, cwd=root, env=environment, capture_output=True, text=True, timeout=SECONDS, check=False
    )
    lines = [line.removeprefix(REACHED) for line in done.stdout.splitlines() if line.startswith(REACHED)]
    return lines, done.stdout + done.stderr


def check(root: Path) -> list[str]:
    here, (found, said) = on_disk(root), reached(root)
    if not found:
        return [f"pytest must collect {len(here)} test files, got none: {said[-300:].strip()}"]
    return [
        f"{name}: pytest must collect it, got {len(found)} of {len(here)} test files. Look at testpaths and "
        "norecursedirs in pyproject.toml"
        for name in here
        if name not in found
    ]


# ---- as pytest's plugin, which names each file instead of loading it, to skip the tests' imports

_met = []


def pytest_pycollect_makemodule(module_path, parent):
    import pytest

    class Named(pytest.Module):
        def collect(self):
            return []

    _met.append(module_path.relative_to(parent.config.rootpath).as_posix())
    return Named.from_parent(parent, path=module_path)


def pytest_terminal_summary(terminalreporter):
    for name in _met:
        terminalreporter.write_line(f"{REACHED}{name}")
