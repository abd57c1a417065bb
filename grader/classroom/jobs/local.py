"""Run a farm on this machine: a scheduler and N workers, each a process of its own, restarted when it ends."""

import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from grader.classroom.jobs import settings
from grader.paths import ROOT
from grader.tools.ports import free_ports

LOOK_S = 0.3
MOST_ENDS = 20  # of one process in a run. After that, restarting won't help


@dataclass
class Kept:
    """One process that must stay running."""

    arguments: list[str]
    log: Path
    scratch: Path
    process: subprocess.Popen | None = None
    ends: int = 0


@dataclass
class Local:
    """Use the farm as a context. `address` and `keys` exist inside the context, and all processes are gone
    afterwards."""

    workers: int
    gpus: list[str] = field(default_factory=list)
    say: Callable = lambda line: None
    more: tuple[str, ...] = ()  # for the scheduler
    logs: Path | None = None  # where what the processes say is kept

    def __enter__(self) -> "Local":
        self.folder = tempfile.TemporaryDirectory(prefix="farm_")
        place = Path(self.folder.name)
        self.keys = settings.make_keys(place / "keys")
        (self.port,) = free_ports()
        self.address = f"tls://127.0.0.1:{self.port}"
        logs = self.logs or place
        logs.mkdir(parents=True, exist_ok=True)
        common = ["--keys", str(self.keys), "--end-with-parent"]
        scheduler = ["scheduler", "--host", "127.0.0.1", "--port", str(self.port), *common, *self.more]
        self.all = [Kept(scheduler, logs / "scheduler.log", place)]
        for number in range(self.workers):
            gpu = ["--gpu", self.gpus[number]] if self.gpus else []
            self.all.append(
                Kept(["worker", self.address, *common, *gpu], logs / f"worker_{number}.log", place)
            )
        self.ending = threading.Event()
        for one in self.all:
            _start(one)
        self.watcher = threading.Thread(target=self._watch, daemon=True)
        self.watcher.start()
        return self

    def _watch(self) -> None:
        while not self.ending.wait(LOOK_S):
            for one in self.all:
                if one.process.poll() is None or one.ends > MOST_ENDS:
                    continue
                one.ends += 1
                self.say(f"a {one.arguments[0]} ended ({_how(one.process.returncode)}) and is restarted")
                _start(one)

    def __exit__(self, *_) -> None:
        self.ending.set()
        self.watcher.join()
        for one in self.all:
            one.process.stdin.close()  # which ends it, and its worker with it
        deadline = time.monotonic() + 5
        for one in self.all:
            try:
                one.process.wait(max(0.0, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                pass
            _kill(one.process)
        self.folder.cleanup()


def _start(one: Kept) -> None:
    paths = [str(ROOT), os.environ.get("PYTHONPATH", "")]
    with open(one.log, "ab") as log:
        if one.process:
            one.process.stdin.close()
            _kill(one.process)
        one.process = subprocess.Popen(
            [sys.executable, "-m", "grader", "farm", *one.arguments],
            cwd=ROOT,
            env={
                **os.environ,
                "DASK_TEMPORARY_DIRECTORY": str(one.scratch),
                "PYTHONPATH": os.pathsep.join(filter(None, paths)),
            },
            stdin=subprocess.PIPE,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )


def _kill(process: subprocess.Popen) -> None:
    """The process and whatever it started, which has its session."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    process.wait()


def _how(code: int) -> str:
    return signal.Signals(-code).name if code < 0 else f"exit code {code}"


def gpus() -> list[str]:
    """Return the numbers of this machine's GPUs, limited by CUDA_VISIBLE_DEVICES."""
    if (seen := os.environ.get("CUDA_VISIBLE_DEVICES")) is not None:
        return [one for one in seen.split(",") if one]
    try:
        listed = subprocess.run(["nvidia-smi", "-L"], capture_output=True, text=True, timeout=20)
    except (OSError, subprocess.TimeoutExpired):
        return []
    found = listed.stdout.splitlines() if listed.returncode == 0 else []
    return [str(number) for number, line in enumerate(found) if line.startswith("GPU")]
