"""Try whether a student edition sets itself up, in a folder of its own, by the two commands that its README names."""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from contextlib import contextmanager
from pathlib import Path

from grader.tools.ports import free_ports

LONGEST_S = 3600  # of one command. The first downloads about 2 GB
LOOK_S = 0.5
ASKED = (
    "lab/tree/course/start.ipynb",
    "api/contents/course/start.ipynb?content=0",
    "api/contents/work/{lab}",
)
OF_THIS_COPY = (
    "PYTHON",
    "GRADER_",
    "TILE_",
    "JUPYTER",
    "IPYTHONDIR",
    "VIRTUAL_ENV",
    "MAKE",
    "MFLAGS",
    "PYTEST_",
)


def tried(edition: Path, say: Callable[[str], None]) -> str:
    """Return what failed in a copy of the edition, which is removed afterwards, or nothing."""
    with tempfile.TemporaryDirectory(prefix=".tried_", dir=edition.parent) as folder:
        copy = Path(folder) / "course"
        shutil.copytree(edition, copy)
        for name, command in (("make lab", _opens), ("make test", _tests)):
            started = time.monotonic()
            say(f"{name}, in a folder where nothing is set up")
            if said := command(copy):
                return f"{name} {said}"
            say(f"{name}: works, {time.monotonic() - started:.0f} s")
    return ""


def _opens(copy: Path) -> str:
    (port,) = free_ports()
    options = (
        f"--no-browser --ip=127.0.0.1 --port={port} --ServerApp.port_retries=0 --IdentityProvider.token="
    )
    lab = sorted(path.name for path in (copy / "labs").iterdir())[0]
    asked = [f"http://127.0.0.1:{port}/{path.format(lab=lab)}" for path in ASKED]
    with _started(copy, "lab", f"LAB={options}") as process:
        until = time.monotonic() + LONGEST_S
        while time.monotonic() < until:
            if process.poll() is not None:
                return f"must open the course, got its end with exit code {process.returncode}. See above"
            if _answers(asked[0], wait=True):
                missing = [url for url in asked if not _answers(url)]
                return f"must show {missing[0]}, got no such page" if missing else ""
            time.sleep(LOOK_S)
    return f"must open the course, got nothing for {LONGEST_S} s"


def _tests(copy: Path) -> str:
    with _started(copy, "test") as process:
        try:
            code = process.wait(LONGEST_S)
        except subprocess.TimeoutExpired:
            return f"must end, got none for {LONGEST_S} s"
    return f"must pass, got exit code {code}. See above" if code else ""


@contextmanager
def _started(copy: Path, *words: str):
    """Run make, as in a terminal that knows of no other copy of the course. Its output goes to stderr as it comes."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(OF_THIS_COPY)}
    own = os.path.join(sys.prefix, "bin")
    kept["PATH"] = os.pathsep.join(one for one in os.environ["PATH"].split(os.pathsep) if one != own)
    process = subprocess.Popen(
        ["make", *words], cwd=copy, env=kept, stdin=subprocess.DEVNULL, stdout=2, start_new_session=True
    )
    try:
        yield process
    finally:
        for ending in (signal.SIGTERM, signal.SIGKILL):
            try:
                os.killpg(process.pid, ending)
                process.wait(20)
            except (ProcessLookupError, subprocess.TimeoutExpired):
                continue


def _answers(url: str, wait: bool = False) -> bool:
    """Return whether the page exists. With `wait`, whether any server answers."""
    try:
        urllib.request.urlopen(url, timeout=10).close()
        return True
    except urllib.error.HTTPError:
        return wait
    except OSError:
        return False
