"""Run a worker's program as a plain process where no box is possible, on macOS and Windows.

It is stopped when its time is over and replaced after each answer. Nothing else is held back, so that only a learner's own
answers are judged this way.
"""

import atexit
import os
import queue
import shutil
import subprocess
import sys
import tempfile
import threading
import time

from grader.box.serve.one import SPENT
from grader.box.systems import SIGXCPU, apart

KEPT = 20_000  # characters of stderr


class Process:
    """Offers a box's interface to warm.Program, without walls. `argv` is Python's arguments."""

    def __init__(self, argv: list, env: dict):
        self.scratch = tempfile.mkdtemp(prefix="answer-")
        self.process = subprocess.Popen(
            [sys.executable, *map(str, argv)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=self.scratch,
            env={**os.environ, "TRITON_CACHE_DIR": os.path.join(self.scratch, "triton"), **env},
            **apart(),
        )
        self.stdin, self.said, self.came, self.rest = self.process.stdin, bytearray(), queue.Queue(), b""
        self.threads = [
            threading.Thread(target=one, args=(pipe,), daemon=True)
            for one, pipe in ((self._hear, self.process.stdout), (self._note, self.process.stderr))
        ]
        for one in self.threads:
            one.start()
        atexit.register(self.kill)

    def _hear(self, pipe) -> None:
        """Windows waits for no pipe with a deadline, so a thread reads."""
        while data := pipe.read1(1 << 16):
            self.came.put(data)
        self.came.put(b"")

    def _note(self, pipe) -> None:
        while data := pipe.read1(1 << 12):
            self.said += data
            del self.said[:-KEPT]

    def read(self, count: int, deadline: float) -> bytes:
        """Read this many bytes. Raise EOFError if the program ended earlier, TimeoutError if it was too late."""
        while len(self.rest) < count:
            try:
                data = self.came.get(timeout=max(0.0, deadline - time.monotonic()))
            except queue.Empty:
                raise TimeoutError("no answer in time") from None
            if not data:
                self.process.wait(5)
                raise EOFError("the program ended")
            self.rest += data
        found, self.rest = self.rest[:count], self.rest[count:]
        return found

    def poll(self) -> int | None:
        return self.process.poll()

    def status(self, error: Exception) -> dict | None:
        """Return how a task ended that sent no status of its own, in a box's words."""
        if isinstance(error, TimeoutError):
            return {"late": True}
        code = self.process.poll()
        return {"exit": -SIGXCPU if code == SPENT else code or 1}

    def stderr_tail(self) -> str:
        return bytes(self.said).decode("utf-8", "backslashreplace")

    def kill(self) -> None:
        """End the program and clear its folder away. Twice is fine."""
        atexit.unregister(self.kill)
        self.process.kill()
        self.process.wait()
        for one in self.threads:
            one.join(1.0)
        for pipe in (self.process.stdin, self.process.stdout, self.process.stderr):
            try:
                pipe.close()
            except OSError:  # it had ended before it read all
                pass
        shutil.rmtree(self.scratch, ignore_errors=True)
