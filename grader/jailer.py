"""The referee's end of the jail: starts the boxed program, sends one task at a time, takes back raw bytes."""

import json
import os
import queue
import secrets
import struct
import sys
import threading
import time
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from grader import box
from grader.jail import frames
from grader.pipes import read_exactly

PROGRAM = Path(__file__).parent / "jail"
START_S = 60.0
GRACE_S = 5.0
MOST_ANSWER_BYTES = 1 << 29
U32 = struct.Struct("<I")


class JailTrouble(Exception):
    """Trouble of our own (the box would not start, the channel broke): never the answer's fault."""


@dataclass(frozen=True)
class Limits:
    wall_s: float = 20.0
    cpu_s: int = 30
    memory_bytes: int = 3 << 30


@dataclass
class Outcome:
    """What came back for one task: a header and arrays, or how the child ended without them."""

    header: dict = field(default_factory=dict)
    arrays: dict = field(default_factory=dict)
    ended: str = ""  # why there is no answer, as a sentence
    seconds: float = 0.0
    cpu_s: float = 0.0  # processor time of the answer's own process

    @property
    def error(self) -> dict | None:
        if self.ended:
            return {"stage": "process", "kind": "Ended", "message": self.ended, "line": None}
        return self.header.get("error")


class Jail:
    """One warm boxed program in one mode. A new one is started when it has died or was killed."""

    def __init__(self, mode: str, level: int | None = None):
        self.mode, self.level, self.process = mode, level, None
        self.lock = threading.Lock()  # one task at a time; a notebook may check from several threads
        self.cpu_s, self.own_cpu_s = (
            0.0,
            0.0,
        )  # of answers and of earlier programs; of the program that runs now

    def ask(self, task: dict, arrays: dict | None = None, limits: Limits = Limits()) -> Outcome:
        nonce = secrets.token_hex(16)
        task = {
            **task,
            "nonce": nonce,
            "limits": {"cpu_s": limits.cpu_s, "memory_bytes": limits.memory_bytes},
        }
        block = frames.pack(task, arrays or {})
        with self.lock:
            data, status = self._exchange(block, limits)
            self.cpu_s += float(status.get("cpu_s", 0.0))
            self.own_cpu_s = float(status.get("own_cpu_s", self.own_cpu_s))
            if status.get("left_behind"):  # a process or file of this answer's; the next one gets a fresh box
                self.stop()
        return _outcome(data, status, nonce, limits)

    def _exchange(self, block: bytes, limits: Limits) -> tuple[bytes, dict]:
        self._start()
        try:
            self._send(struct.pack("<d", limits.wall_s) + frames.LENGTH.pack(len(block)) + block)
            return self._receive(time.monotonic() + limits.wall_s + GRACE_S)
        except (OSError, EOFError, TimeoutError, ValueError) as error:
            why = self.process.reason() if self.process else ""
            over = self.process is not None and self.process.over_limit
            self.stop()
            if over:
                return b"", {"over": why}
            raise JailTrouble(
                f"the {self.mode} jail broke off: {error or type(error).__name__} {why}".strip()
            ) from error

    def _start(self) -> None:
        if self.process and self.process.poll() is None:
            return
        environment = {"TRITON_INTERPRET": "1"} if self.mode == "interpret" else {}
        threads = {f"{lib}_NUM_THREADS": "1" for lib in ("OMP", "OPENBLAS", "MKL")}
        with _spawning:
            self.process = box.spawn(
                [sys.executable, "-I", "-B", str(PROGRAM / "main.py"), self.mode],
                level=self.level or box.best_level(),
                readonly=[PROGRAM],
                env={**environment, **threads},
            )
        try:
            self._read(time.monotonic() + START_S, len(b"ready\n"))
        except (OSError, EOFError, TimeoutError) as error:
            tail = self.process.stderr_tail()
            self.stop()
            raise JailTrouble(
                f"the {self.mode} jail did not start: {tail.strip()[-600:] or error}"
            ) from error

    def _send(self, data: bytes) -> None:
        self.process.stdin.write(data)
        self.process.stdin.flush()

    def _read(self, deadline: float, count: int) -> bytes:
        return read_exactly(self.process.stdout.fileno(), count, deadline)

    def _receive(self, deadline: float) -> tuple[bytes, dict]:
        parts, total = [], 0
        while True:
            (size,) = U32.unpack(self._read(deadline, 4))
            if size == 0:
                break
            total += size
            if size > 1 << 20 or total > MOST_ANSWER_BYTES:
                raise ValueError("the answer is larger than any answer may be")
            parts.append(self._read(deadline, size))
        (size,) = U32.unpack(self._read(deadline, 4))
        if size > 4096:
            raise ValueError("the status is too long")
        return b"".join(parts), json.loads(self._read(deadline, size))

    def stop(self) -> None:
        if self.process:
            self.process.kill()
            self.process = None
        self.cpu_s, self.own_cpu_s = self.cpu_s + self.own_cpu_s, 0.0


def _outcome(data: bytes, status: dict, nonce: str, limits: Limits) -> Outcome:
    took = {"seconds": float(status.get("seconds", 0.0)), "cpu_s": float(status.get("cpu_s", 0.0))}
    if not data or status.get("late") or status.get("exit"):
        return Outcome(ended=_how_it_ended(status, limits), **took)
    try:
        header, arrays = frames.unpack(data)
    except frames.BadFrame:
        return Outcome(ended="the answer wrote into the grader's own channel", **took)
    if header.get("nonce") != nonce:
        return Outcome(ended="the answer wrote into the grader's own channel", **took)
    return Outcome(header, arrays, **took)


def _how_it_ended(status: dict, limits: Limits) -> str:
    import signal

    code = status.get("exit", 0)
    if status.get("over"):
        return f"the answer {status['over']} and was stopped"
    if status.get("late"):
        return f"the answer was still running after {limits.wall_s:.0f} s and was stopped; what does it wait for?"
    if code == -signal.SIGXCPU:
        return f"the answer was still running after {limits.cpu_s} s of processor time and was stopped; is there a loop that never ends?"
    if code == -signal.SIGKILL:
        return "the process of the answer was killed, most likely for the memory it used"
    if code < 0:
        return f"the process of the answer crashed ({signal.Signals(-code).name})"
    return f"the process of the answer ended itself (exit code {code}) without giving a result"


class Jails:
    """Up to `width()` jails of one mode, started as they are needed; a task goes to the warmest that is free."""

    def __init__(self, mode: str, level: int | None = None):
        self.all = [Jail(mode, level) for _ in range(width())]
        self.free = queue.LifoQueue()
        for one in self.all:
            self.free.put(one)

    def ask(self, task: dict, arrays: dict | None = None, limits: Limits = Limits()) -> Outcome:
        one = self.free.get()
        try:
            return one.ask(task, arrays, limits)
        finally:
            self.free.put(one)

    def stop(self) -> None:
        for one in self.all:
            one.stop()


@cache
def width() -> int:
    """Jails of one mode side by side: the two modes of a kernel question share the cores."""
    return max(1, min(8, cores() // 2))


def cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


_jails: dict[tuple, Jails] = {}
_spawning = threading.Lock()  # a box looks for a user that nobody has; two at a time could find the same


def jail(mode: str, level: int | None = None) -> Jails:
    """The warm jails of this process for a mode; starting one costs a quarter of a second or two."""
    return _jails.setdefault((mode, level), Jails(mode, level))


def cpu_s() -> float:
    """Processor time that the jails of this process have used so far."""
    return sum(one.cpu_s + one.own_cpu_s for jails in _jails.values() for one in jails.all)


def stop_all() -> None:
    for one in _jails.values():
        one.stop()
    _jails.clear()
