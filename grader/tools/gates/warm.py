"""Fork a kernel for each notebook from a Python that has imported their packages, because reading torch again takes
seconds.

Each notebook has a process, a namespace, variables and a Python path of its own, and nothing of the course is read
before. Started by `kernels()`. The kernel's command, which Jupyter runs, waits as long as the kernel lives.
"""

import importlib
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NoReturn

LOADED = (
    "ipykernel.kernelapp",
    "ipykernel.ipkernel",
    "ipykernel.zmqshell",
    "numpy",
    "anywidget",
    "torch",
    "triton",
)
COURSE = ("grader", "kernels", "tilescope", "widgets")  # read again by each notebook
# What Jupyter starts instead of a kernel. It hands over its folder, and ends when the kernel's end of the line does.
ASK = """import json, os, signal, socket, sys
signal.signal(signal.SIGINT, signal.SIG_IGN)
line = socket.socket(socket.AF_UNIX)
line.connect(sys.argv[1])
line.sendall(json.dumps([sys.argv[2:], os.getcwd(), dict(os.environ)]).encode() + b"\\n")
while line.recv(1): pass
"""


@contextmanager
def kernels(root: Path) -> Iterator[list[str] | None]:
    """Return the command of a kernel, as in a kernel's specification, or None if a process with threads must not
    fork."""
    from grader.box import systems  # the kernel's side of this file needs no grader

    if not systems.has_boxes():
        yield None
        return
    variables = {key: value for key, value in os.environ.items() if key != "TRITON_INTERPRET"}
    paths = filter(None, (str(root), variables.get("PYTHONPATH")))
    variables["PYTHONPATH"] = os.pathsep.join(paths)
    with tempfile.TemporaryDirectory(prefix="kernels-") as folder:
        place = f"{folder}/asked"
        command = [sys.executable, "-m", __spec__.name, place]
        started = subprocess.Popen(command, cwd=root, env=variables, stdout=subprocess.PIPE)
        try:
            assert started.stdout.readline(), "it must say that it listens, and ended"
            yield [sys.executable, "-I", "-S", "-c", ASK, place, "-f", "{connection_file}"]
        finally:
            started.kill()
            started.communicate()


def listen(place: str) -> None:
    for name in LOADED:
        with suppress(ModuleNotFoundError):
            importlib.import_module(name)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(place)
        listener.listen()
        print("listening", flush=True)
        os.dup2(2, 1)
        listener.settimeout(1)
        starter = os.getppid()
        while os.getppid() == starter:
            try:
                line, _ = listener.accept()
            except TimeoutError:
                continue
            if os.fork() == 0:
                listener.close()
                become_a_kernel(line)
            line.close()


def become_a_kernel(line: socket.socket) -> NoReturn:
    """For the rest of this process."""
    line.setblocking(True)
    os.setsid()
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    options, folder, variables = json.loads(line.makefile().readline())
    threading.Thread(target=end_with, args=(line,), daemon=True).start()
    own = os.environ["PYTHONPATH"].split(os.pathsep)
    paths = variables["PYTHONPATH"].split(os.pathsep)
    sys.path[:] = dict.fromkeys([*paths, *(path for path in sys.path if path not in own)])
    for name in [name for name in sys.modules if name.partition(".")[0] in COURSE]:
        del sys.modules[name]
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(variables)
    sys.modules.pop("sitecustomize", None)
    with suppress(ModuleNotFoundError):
        importlib.import_module("sitecustomize")
    sys.argv = ["kernel", *options, f"--IPKernelApp.parent_handle={os.getppid()}"]
    from ipykernel.kernelapp import IPKernelApp

    IPKernelApp.launch_instance()
    os._exit(0)


def end_with(line: socket.socket) -> None:
    """End the kernel, and all that it started, when its requester is gone."""
    while line.recv(1):
        pass
    os.killpg(0, signal.SIGKILL)


if __name__ == "__main__":
    listen(sys.argv[1])
