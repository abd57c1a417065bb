"""Watch a running box from outside. Reads its pipes, its end, and the reason for its end.

End it with kill() or `with`. A forgotten box ends with this process, when its lifeline closes.
"""

import json
import os
import select
import signal
import subprocess
import threading
import time

from grader.box import keeper
from grader.box.limits import BoxError, Level, Limits, size_text

RING_BYTES = 1 << 20
KEEPER_S = 10.0  # the keeper answers within milliseconds, and after this it counts as dead


class Ring:
    """Reads a pipe to its end in the background, so its writer never waits. Keeps the last mebibyte."""

    def __init__(self, pipe):
        self._pipe, self._kept, self.seen = pipe, bytearray(), 0
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._drain, daemon=True)
        self._thread.start()

    def _drain(self):
        with self._pipe:
            while data := self._pipe.read(1 << 16):
                with self._lock:
                    self.seen += len(data)
                    self._kept += data
                    del self._kept[: max(0, len(self._kept) - RING_BYTES)]

    def tail(self, count: int) -> bytes:
        with self._lock:
            return bytes(self._kept[-count:])

    def finish(self):
        self._thread.join(1.0)


class Box:
    """Made by spawn(). `stdin` and `stdout` are the program's own pipes, unbuffered."""

    def __init__(
        self,
        process: subprocess.Popen,
        lifeline,
        report,
        level: Level,
        limits: Limits,
        folder: str,
        clear: str,
    ):
        self.level, self.limits, self.scratch = level, limits, f"{folder}/scratch"
        self.stdin, self.stdout = process.stdin, process.stdout
        self._keeper, self._lifeline, self._clear = process, lifeline, clear
        self._ring, self._received, self._asked_to_end = Ring(process.stderr), 0, "was stopped by the grader"
        self._said, self._started, self._ended = {}, threading.Event(), threading.Event()
        threading.Thread(target=self._listen, args=(report,), daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.kill()

    def _listen(self, report):
        """Read the keeper's lines. When they end, the box has ended."""
        with report:
            for line in report:
                self._said.update(json.loads(line))
                if "ready" in self._said:
                    self._started.set()
        self._keeper.wait()
        if "why" not in self._said:
            session = self._said.get("session")
            clean = session is None or keeper.sweep(self._keeper.pid, session, bury=False)
            keeper.clear(self._clear)
            self._said |= {"why": "lost", "status": None, "cpu_s": 0.0, "clean": clean}
        self._ring.finish()
        self._ended.set()
        self._started.set()

    def wait_until_started(self, timeout: float = 30.0):
        """Return when the walls are up and the program begins. Raise BoxError if they could not be raised."""
        self._started.wait(timeout)
        if "ready" not in self._said:
            self.kill()
            raise BoxError(
                f"the box of level {int(self.level)} did not start: {self.stderr_tail(600).strip()}"
            )

    def wait(self, timeout: float | None = None) -> int | None:
        """Return the exit code once all of the box is gone (negative for a signal, or our own kill), or None
        before."""
        return self._code() if self._ended.wait(timeout) else None

    def poll(self) -> int | None:
        return self.wait(0.0)

    @property
    def over_limit(self) -> bool:
        """Return whether it ended for exceeding its limits, by its own doing, not ours."""
        return self.poll() is not None and self._said["why"] in ("memory", "processes", "scratch")

    def _code(self) -> int:
        status = self._said["status"]
        if status is None:
            return -signal.SIGKILL
        if self.level == Level.BUBBLEWRAP and 128 < status < 128 + 65:  # bubblewrap's way to pass on a signal
            return 128 - status
        return status

    def kill(self, why: str = "was stopped by the grader"):
        """Ends everything in the box and waits until it is gone. Twice is fine."""
        if self.poll() is None:
            self._asked_to_end = why
            try:
                self._lifeline.write(b"x")
            except OSError:
                pass
            if self.wait(KEEPER_S) is None:
                self._keeper.kill()
                self.wait(KEEPER_S)
        for pipe in (self.stdin, self.stdout, self._lifeline):
            pipe.close()

    def read_exactly(self, count: int, timeout: float) -> bytes:
        """Read this many bytes of its output. Raise EOFError if it ends before, TimeoutError if they are late."""
        deadline, parts = time.monotonic() + timeout, []
        self._received += count
        if self._received > self.limits.output_bytes:
            self.kill(f"sent more than {size_text(self.limits.output_bytes)} of output")
            raise EOFError(self.reason())
        while count:
            if not select.select([self.stdout], [], [], max(0.0, deadline - time.monotonic()))[0]:
                raise TimeoutError(f"no answer within {timeout:g} s")
            data = os.read(self.stdout.fileno(), min(count, 1 << 20))
            if not data:
                self.wait(KEEPER_S)
                raise EOFError(self.reason() or "closed its output")
            parts.append(data)
            count -= len(data)
        return b"".join(parts)

    def stderr_tail(self, count: int = 4000) -> str:
        """Return the end of its stderr. Characters that could steer a terminal are shown as codes."""
        text = self._ring.tail(count).decode("utf-8", "backslashreplace")
        return "".join(c if c in "\n\t" or c.isprintable() else f"\\x{ord(c):02x}" for c in text)

    def reason(self) -> str | None:
        """Return why it ended, to follow "the program", or None while it runs."""
        if self.poll() is None:
            return None
        limits, why, code = self.limits, self._said["why"], self._code()
        by_keeper = {
            "killed": self._asked_to_end,
            "lost": "lost its keeper, which something outside has killed",
            "wall": f"ran longer than {limits.wall_s or 0:g} s",
            "memory": f"used more than {size_text(limits.memory_bytes)} of memory",
            "processes": f"started more than {limits.processes} processes",
            "scratch": f"wrote more than {size_text(limits.file_bytes)}, or too many files",
        }
        if why in by_keeper:
            return by_keeper[why]
        spent = limits.cpu_s is not None and self._said["cpu_s"] >= limits.cpu_s
        if code == -signal.SIGXCPU or code == -signal.SIGKILL and spent:
            return f"used more than {limits.cpu_s} s of processor time"
        if code == -signal.SIGKILL:
            return "was killed (SIGKILL) by itself or, if the machine ran short of memory, by the system"
        if code < 0:
            return f"crashed with {_signal_name(-code)}"
        return "ended" if code == 0 else f"ended with exit code {code}"


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
