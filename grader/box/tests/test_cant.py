"""Every attack: live where there is no box, held by each level that promises to hold it."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from grader.box.limits import Level
from grader.box.measure import ATTACKS
from grader.box.tests.conftest import measured, need

PROMISES = [(name, level) for name, (_, least) in ATTACKS.items() for level in (3, 2, 1) if level >= least]
# What an ordinary user, or a kernel of one's own, may lack the means for: then there is nothing to hold back.
NEEDS = {"privileges": "root", "vsock": "a kernel with virtual sockets", "namespaces": "open user namespaces"}


@pytest.mark.parametrize("name", ATTACKS)
def test_live_outside(name):
    held, saw = measured(None).rows[name]
    if held and name in NEEDS and os.geteuid() != 0:
        pytest.skip(f"without a box this needs {NEEDS[name]}: {saw}")
    assert not held, f"{name} does nothing even without a box ({saw}), so its tests show nothing"


@pytest.mark.parametrize("name, level", PROMISES, ids=lambda value: str(value))
def test_cant(name, level):
    need(level)
    held, saw = measured(Level(level)).rows[name]
    assert held, f"{ATTACKS[name][0]}: {saw}"


def test_every_attack_has_its_row():
    from grader.box import measure

    sys.path.insert(0, str(measure.PROGRAM))
    try:
        import run

        found = {
            name
            for module in run.MODULES
            for name, value in vars(module).items()
            if _is_attack(value, module)
        }
    finally:
        sys.path.remove(str(measure.PROGRAM))
    assert found == set(ATTACKS)


def _is_attack(value, module):
    return (
        callable(value)
        and getattr(value, "__module__", "") == module.__name__
        and not value.__name__.startswith("_")
    )


SHOW = "import sys; from grader.box.show import main; sys.exit(main(['--json']))"


def test_an_ordinary_user_has_the_same_walls():
    """The boxes of an instructor who is not root, on a copy of this package that anyone may read."""
    python, setpriv = "/usr/bin/python3", shutil.which("setpriv")
    if os.geteuid() != 0 or not setpriv or not Path(python).exists():
        pytest.skip("only root can become someone else, and it takes setpriv and a system Python")
    if subprocess.run([python, "-c", "import sys; sys.exit(sys.version_info < (3, 11))"]).returncode:
        pytest.skip("the system's Python is older than 3.11")
    for level in (3, 2):
        need(level)
    with tempfile.TemporaryDirectory(prefix="box-") as folder:
        shutil.copytree(
            Path(__file__).parents[1], f"{folder}/grader/box", ignore=shutil.ignore_patterns("tests")
        )
        Path(folder, "grader", "__init__.py").touch()
        os.mkdir(f"{folder}/home")
        os.chown(f"{folder}/home", 65534, 65534)
        subprocess.run(["chmod", "-R", "a+rX", folder], check=True)
        user = [setpriv, "--reuid", "65534", "--regid", "65534", "--clear-groups"]
        clean = ["env", "-i", f"HOME={folder}/home", "PATH=/usr/bin:/bin"]
        done = subprocess.run(
            [*user, *clean, python, "-B", "-c", SHOW],
            cwd=folder,
            capture_output=True,
            text=True,
        )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert {number: found["levels"][number]["why_not"] for number in ("3", "2", "1")} == {
        "3": "",
        "2": "",
        "1": "",
    }
    assert found["best"] == 3
