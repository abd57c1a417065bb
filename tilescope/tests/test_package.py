"""tilescope as a package of its own: what pip makes of this folder alone."""

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

HERE = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def installed(tmp_path_factory) -> Path:
    """A folder into which the wheel of a copy of this package was unpacked."""
    scratch = tmp_path_factory.mktemp("wheel")
    for name in ("tilescope", "view"):  # the folder that draws lies next to this one
        left = shutil.ignore_patterns("__pycache__", "*.egg-info")
        shutil.copytree(HERE.parent / name, scratch / name, ignore=left)
    build = [sys.executable, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation", "--no-index"]
    done = subprocess.run(
        [*build, "-w", scratch, scratch / "tilescope"], capture_output=True, text=True, cwd=scratch
    )
    assert done.returncode == 0, done.stderr[-2000:]
    (wheel,) = scratch.glob("*.whl")
    with zipfile.ZipFile(wheel) as file:
        file.extractall(scratch / "target")
    return scratch / "target"


def test_every_module_and_no_test_is_inside(installed):
    wanted = {
        p.relative_to(HERE).as_posix()
        for p in [*HERE.glob("*.py"), *HERE.glob("machine/*.py"), *HERE.glob("front_end/*.py")]
    }
    found = {
        p.relative_to(installed / "tilescope").as_posix() for p in (installed / "tilescope").rglob("*.py")
    }
    assert found == wanted


def test_the_view_is_inside(installed):
    found = {path.name for path in (installed / "tilescope/view").iterdir()}
    assert (
        found
        == {path.name for path in (HERE.parent / "view").iterdir()}
        > {"scene.js", "scene.css", "defs.svg"}
    )


def test_it_brings_the_command(installed):
    (entries,) = installed.glob("*.dist-info/entry_points.txt")
    written = entries.read_text().split()
    assert written[:4] == ["[console_scripts]", "tilescope", "=", "tilescope.command:main"]
    assert written[4:] == ["[pytest11]", "tilescope.pytest_plugin", "=", "tilescope.pytest_plugin"]


def test_it_imports_without_torch_and_triton(installed):
    code = "import sys; sys.modules['torch'] = sys.modules['triton'] = None; import tilescope, tilescope.findings"
    code += "; import tilescope.machine.run; print(tilescope.__file__, tilescope.__version__)"
    env = {**os.environ, "PYTHONPATH": str(installed)}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=installed, env=env
    )
    assert done.stdout.split() == [str(installed / "tilescope/__init__.py"), "0.1.0"], done.stderr
