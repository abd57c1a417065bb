"""The README's five minutes: its script, as it stands there, has the findings that it shows."""

import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "tilescope/README.md").read_text(encoding="utf-8")
SCRIPT, ATOMIC, WATCH, RAISE = re.findall(r"```python\n(.*?)```", TEXT, re.S)
LOST = re.compile(r"    so_far = .*\n    tl\.store.*\n")


def ran(folder: Path, script: str, *how: str):
    (folder / "total.py").write_text(script)
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, *how, "total.py"]
    return subprocess.run(command, capture_output=True, text=True, cwd=folder, env=env)


def shown(after: str) -> list[str]:
    """The output that the README shows for a command, the first after some words."""
    block = TEXT[TEXT.index(after) :].split("$ tilescope total.py\n")[1].split("\n\n")[0]
    return [line.strip() for line in block.splitlines()]


def test_the_race_is_found_as_shown(tmp_path):
    done = ran(tmp_path, SCRIPT, "-m", "tilescope")
    assert (done.stdout + done.stderr).splitlines() == shown("The tensors are on the CPU")
    assert done.returncode == 1


def test_the_atomic_ends_it(tmp_path):
    done = ran(tmp_path, LOST.sub(ATOMIC, SCRIPT), "-m", "tilescope")
    assert (done.stdout + done.stderr).splitlines() == shown("Replace the last two lines")
    assert done.returncode == 0


def test_watch_and_install_from_python(tmp_path):
    done = ran(tmp_path, SCRIPT.split("total[(4,)]")[0] + WATCH + RAISE)
    assert done.stdout.startswith("race out 11 [[0, 0, 0], [3, 0, 0]]\n")
    assert done.stdout.splitlines()[-1] == "4000 8.35e-10 memory"
    assert (
        "tilescope.launcher.LaunchError: " in done.stderr
        and "race in total: program 0 writes out[0], program 3" in done.stderr
    )
