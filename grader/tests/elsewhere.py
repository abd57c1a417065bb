"""An environment that is as little like Linux as Linux can be: no compiled library of Triton, no box, no fork, none of the
modules and functions that Windows lacks, and its code page for every text whose encoding nobody names."""

import os
import subprocess
import sys
import sysconfig
import venv
import zipfile
from pathlib import Path

from grader.paths import ROOT
from tilescope import python_of_triton

CUSTOM = """
import builtins, importlib.abc, io, os, select, signal, subprocess, sys

GONE = {"fcntl", "resource", "pwd", "grp", "termios", "tty", "pty", "syslog", "crypt"}


class Gone(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name in GONE:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


for name in GONE:
    sys.modules.pop(name, None)
sys.meta_path.insert(0, Gone())

stop = signal.SIGKILL
subprocess.Popen.kill = lambda self: self.send_signal(stop)
for name in "fork forkpty getuid geteuid getgid getegid setsid setpgid killpg wait4 wait3 getpriority setpriority sysconf \\
        sched_getaffinity mkfifo chown getpgid getloadavg".split():
    vars(os).pop(name, None)
for name in "SIGKILL SIGXCPU SIGALRM SIGHUP SIGUSR1 SIGUSR2 SIGCHLD SIGPIPE SIGQUIT alarm setitimer".split():
    vars(signal).pop(name, None)

plain = select.select


def of_sockets(reads, writes, errors, *timeout):
    import socket
    if not all(isinstance(one, socket.socket) for one in [*reads, *writes]):
        raise OSError(10038, "an operation was attempted on something that is not a socket")
    return plain(reads, writes, errors, *timeout)


select.select = of_sockets
first = io.open


def opened(file, mode="r", buffering=-1, encoding=None, errors=None, newline=None, *more):
    if "b" not in mode and encoding in (None, "locale"):
        encoding = "cp1252"
    if "b" not in mode and newline is None and set(mode) & set("wax+"):
        newline = "\\r\\n"
    return first(file, mode, buffering, encoding, errors, newline, *more)


builtins.open = io.open = opened
os.environ["GRADER_BOX"] = "none"
"""


def made(folder: Path) -> Path:
    """Make the environment, with the packages of this one and Triton's Python files alone; return its Python."""
    venv.create(folder, symlinks=True, with_pip=False)
    site = Path(sysconfig.get_path("purelib", vars={"base": str(folder), "platbase": str(folder)}))
    with zipfile.ZipFile(python_of_triton.repacked(wheel_of_here(folder), folder)) as wheel:
        wheel.extractall(site)
    (site / "others.pth").write_text(f"{sysconfig.get_path('purelib')}\n", encoding="utf-8")
    (site / "sitecustomize.py").write_text(CUSTOM, encoding="utf-8")
    return folder / "bin/python"


def wheel_of_here(folder: Path) -> Path:
    """Zip the Triton that is installed as its wheel holds it, its large files left out."""
    import triton

    home, path = Path(triton.__file__).parents[1], folder / "triton.whl"
    with zipfile.ZipFile(path, "w") as wheel:
        for part in [*home.glob("triton/**/*.py"), *home.glob("triton-*.dist-info/**/*")]:
            if part.is_file():
                wheel.write(part, part.relative_to(home).as_posix())
    return path


def run(python: Path, *arguments, said: str = "", seconds: float = 600) -> subprocess.CompletedProcess:
    """Run the course there, its output in Windows' code page where nobody asks for another."""
    alone = {
        name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "TILESCOPE"))
    }
    return subprocess.run(
        [python, *arguments],
        input=said.encode(),
        capture_output=True,
        cwd=ROOT,
        timeout=seconds,
        env={**alone, "PYTHONIOENCODING": "cp1252"},
    )


if __name__ == "__main__":  # python -m grader.tests.elsewhere FOLDER: to look around there
    print(made(Path(sys.argv[1])))
