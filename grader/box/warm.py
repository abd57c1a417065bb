"""Talk to warm boxed programs from outside. Each takes one task at a time and returns a header and raw arrays."""

import json
import math
import os
import queue
import secrets
import signal
import struct
import sys
import threading
import time
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from grader import box
from grader.box.in_process import Here
from grader.box.pipes import read_exactly
from grader.box.serve import frames
from grader.box.systems import SIGKILL, SIGXCPU, has_boxes, has_processes
from grader.box.unboxed import Process
from grader.paths import ROOT

SERVER = Path(__file__).parent / "serve"
START_S = 60.0
GRACE_S = 5.0
U32 = struct.Struct("<I")
ASLEEP = (
    0.5  # of the wall time. A process that neither computed nor waited for a processor was idle on purpose
)


class JailTrouble(Exception):
    """Trouble of our own (the box would not start, the channel broke), never the answer's fault."""


@dataclass(frozen=True)
class Limits:
    """The limits of one task. Processor time decides, so that a busy machine fails no answer. The wall limit is for a
    task that sleeps."""

    wall_s: float = 30.0
    cpu_s: int = 30
    enough_s: float = (
        math.inf
    )  # of processor time. A process that used this much without ending is late by its own doing
    memory_bytes: int = 3 << 30
    answer_bytes: int = 64 << 20


@dataclass(frozen=True)
class Worker:
    """A module that runs in a box, and the files and folders that are all of ours the box holds."""

    module: str  # "grader.jail.inside.lower"
    shown: tuple[str, ...]  # from the checkout's root, "grader/jail"
    environment: dict = field(default_factory=dict, hash=False)
    processes: int = 64  # threads among them


# Kinds of error for a task whose process ended without an answer, each with a hint of its own.
OVERFULL, LATE, ENDLESS, KILLED = "Overfull", "Late", "Endless", "Killed"
CRASHED, EXITED, FORGED = "Crashed", "Exited", "Forged"
WROTE = "the answer wrote into the grader's own channel"


@dataclass
class Outcome:
    """Holds the result of one task, as a header and arrays, or as the child's end without them."""

    header: dict = field(default_factory=dict)
    arrays: dict = field(default_factory=dict)
    ended: str = ""  # a sentence with the reason why the answer is missing
    end: str = ""  # which of the kinds above
    starved: bool = False  # it was late on a busy machine, which isn't the answer's fault
    seconds: float = 0.0
    cpu_s: float = 0.0  # processor time of the task's own process

    @property
    def error(self) -> dict | None:
        if self.ended:
            return {"stage": "process", "kind": self.end, "message": self.ended, "line": None}
        found = self.header.get("error")
        return clean_error(found) if found else None


def clean_error(found) -> dict:
    """Return a box's error as plain text and a line, because its writer can't be trusted."""
    found = found if isinstance(found, dict) else {}
    line = found.get("line")
    names = ["stage", "kind", "message"] + ["what"] * ("what" in found)  # that the machine ran out of
    kept = {name: str(found.get(name) or "")[:2000] for name in names}
    whole = isinstance(line, int) and not isinstance(line, bool) and 0 < line < 1_000_000
    return {**kept, "line": line if whole else None}


class Flood(Exception):
    """More came than any answer may be."""


class Program:
    """One warm boxed program. A new one is started when it has died or was killed."""

    def __init__(self, worker: Worker, level: int | None = None):
        self.worker, self.level, self.process, self.ready = worker, level, None, False
        self.lock = threading.Lock()  # one task at a time, because a notebook may check from several threads
        self.cpu_s, self.own_cpu_s = (
            0.0,
            0.0,
        )  # of tasks and of earlier programs, and of the present program

    def ask(self, task: dict, arrays: dict | None = None, limits: Limits = Limits()) -> Outcome:
        nonce = secrets.token_hex(16)
        bounds = {"cpu_s": limits.cpu_s, "memory_bytes": limits.memory_bytes}
        block = frames.pack({**task, "nonce": nonce, "limits": bounds}, arrays or {})
        with self.lock:
            data, status = self._exchange(block, limits)
            self.cpu_s += _seconds(status, "cpu_s")
            self.own_cpu_s = _seconds(status, "own_cpu_s") or self.own_cpu_s
            if status.get(
                "left_behind"
            ):  # a process or file of this answer. The next answer gets a fresh box
                self.stop()
                if not has_boxes():  # it comes up while the referee goes on
                    self.process, self.ready = self._unboxed(), False
        return _outcome(data, status, nonce, limits)

    def _exchange(self, block: bytes, limits: Limits) -> tuple[bytes, dict]:
        self._start()
        try:
            self._send(struct.pack("<d", limits.wall_s) + frames.LENGTH.pack(len(block)) + block)
            return self._receive(time.monotonic() + limits.wall_s + GRACE_S, limits.answer_bytes)
        except Flood:
            self.stop()
            return b"", {"over": f"sent more than {limits.answer_bytes >> 20} MiB"}
        except (OSError, EOFError, TimeoutError, ValueError) as error:
            if isinstance(self.process, Process):
                status = self.process.status(error)
                self.stop()
                return b"", status
            why = self.process.reason() if self.process else ""
            over = self.process is not None and self.process.over_limit
            self.stop()
            if over:
                return b"", {"over": why}
            said = f"{error or type(error).__name__} {why}".strip()
            raise JailTrouble(f"the box of {self.worker.module} broke off: {said}") from error

    def _start(self) -> None:
        if not (self.process and self.process.poll() is None):
            self.process, self.ready = self._boxed() if has_boxes() else self._unboxed(), False
        if self.ready:
            return
        try:
            self._read(time.monotonic() + START_S, len(b"ready\n"))
            self.ready = True
        except (OSError, EOFError, TimeoutError) as error:
            tail = self.process.stderr_tail()
            self.stop()
            raise JailTrouble(
                f"the box of {self.worker.module} did not start: {tail.strip()[-600:] or error}"
            ) from error

    def _boxed(self):
        level = box.Level(self.level or box.best_level())
        shared = {"BOX_SHARED_MEMORY": "/dev/shm"} if level == box.Level.BUBBLEWRAP else {}
        with _spawning:
            return box.spawn(
                [sys.executable, *self._program("main.py")],
                level=level,
                readonly=[SERVER, *(ROOT / path for path in self.worker.shown)],
                env={**self._environment(), **shared},
                limits=box.Limits(processes=self.worker.processes),
            )

    def _unboxed(self) -> Process:
        return Process(self._program("one.py"), self._environment())

    def _program(self, name: str) -> list[str]:
        return ["-I", "-B", str(SERVER / name), str(ROOT), self.worker.module, *self.worker.shown]

    def _environment(self) -> dict:
        return {
            **self.worker.environment,
            **{f"{library}_NUM_THREADS": "1" for library in ("OMP", "OPENBLAS", "MKL")},
        }

    def _send(self, data: bytes) -> None:
        self.process.stdin.write(data)
        self.process.stdin.flush()

    def _read(self, deadline: float, count: int) -> bytes:
        if isinstance(self.process, Process):
            return self.process.read(count, deadline)
        return read_exactly(self.process.stdout.fileno(), count, deadline)

    def _receive(self, deadline: float, most: int) -> tuple[bytes, dict]:
        parts, total = [], 0
        while True:
            (size,) = U32.unpack(self._read(deadline, 4))
            if size == 0:
                break
            total += size
            if size > 1 << 20 or total > most:
                raise Flood
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


def _seconds(status: dict, name: str) -> float:
    return float(status.get(name) or 0.0)


def _outcome(data: bytes, status: dict, nonce: str, limits: Limits) -> Outcome:
    took = {"seconds": _seconds(status, "seconds"), "cpu_s": _seconds(status, "cpu_s")}
    if not data or status.get("late") or status.get("exit"):
        end, ended = _how_it_ended(status, limits)
        return Outcome(
            ended=ended, end=end, starved=bool(status.get("late")) and _starved(status, limits), **took
        )
    try:
        header, arrays = frames.unpack(data)
    except frames.BadFrame:
        return Outcome(ended=WROTE, end=FORGED, **took)
    if header.get("nonce") != nonce:
        return Outcome(ended=WROTE, end=FORGED, **took)
    return Outcome(header, arrays, **took)


def _starved(status: dict, limits: Limits) -> bool:
    """Return whether a late task wanted to compute and could not. A task that slept is late by its own doing, and so
    is one whose processes together had all the processor time allowed."""
    had = _seconds(status, "cpu_s") + _seconds(status, "children_cpu_s")
    wanted = had + _seconds(status, "waited_s")
    return wanted >= ASLEEP * _seconds(status, "seconds") and had < min(limits.cpu_s, limits.enough_s)


def _how_it_ended(status: dict, limits: Limits) -> tuple[str, str]:
    """(kind, sentence)."""
    code = status.get("exit", 0)
    if status.get("over"):
        return OVERFULL, f"the answer {status['over']} and was stopped"
    had = _seconds(status, "cpu_s") + _seconds(status, "children_cpu_s")
    if status.get("late") and had >= limits.enough_s:
        still = f"the answer was still running after {had:.0f} s of processor time and was stopped"
        return ENDLESS, f"{still}: it does too much, or one program does it all"
    if status.get("late"):
        still = f"the answer was still running after {limits.wall_s:.0f} s and was stopped"
        return LATE, f"{still}; what does it wait for?"
    if code == -SIGXCPU:
        still = f"the answer was still running after {limits.cpu_s} s of processor time and was stopped"
        return ENDLESS, f"{still}; is there a loop that never ends?"
    if code == -SIGKILL:
        return KILLED, "the process of the answer was killed, most likely for the memory it used"
    if code < 0:
        return CRASHED, f"the process of the answer crashed ({signal_name(-code)})"
    return EXITED, f"the process of the answer ended itself (exit code {code}) without giving a result"


def signal_name(number: int) -> str:
    """Those of real time have none."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


class Programs:
    """Up to `width()` programs of one worker, started as needed. A task goes to the warmest free one."""

    def __init__(self, worker: Worker, level: int | None = None):
        self.all = [Program(worker, level) for _ in range(width())]
        self.free = queue.LifoQueue()
        for one in self.all:
            self.free.put(one)

    def ask(self, task: dict, arrays: dict | None = None, limits: Limits = Limits()) -> Outcome:
        """Run one task. If a busy machine stopped it, run it once more, with nothing of ours in parallel."""
        outcome = self._ask_one(task, arrays, limits)
        if not outcome.starved:
            return outcome
        with _alone:
            outcome = self._ask_one(task, arrays, limits)
        if outcome.starved:
            raise JailTrouble(
                f"this machine was too busy: after {limits.wall_s:.0f} s of waiting, twice, a task was not done"
            )
        return outcome

    def _ask_one(self, task, arrays, limits) -> Outcome:
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
    """Return how many programs of one worker run in parallel, because jail, machine and compiler share the cores."""
    return max(min(2, cores()), min(8, cores() // 2))


def cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


_programs: dict[tuple, Programs] = {}
_spawning = threading.Lock()  # a box looks for an unused user, and two looking together could find the same
_alone = threading.Lock()


def programs(worker: Worker, level: int | None = None) -> Programs:
    """Return this process's warm programs for a worker. Starting one costs a quarter of a second or two."""
    if (worker, level) not in _programs:
        _programs[worker, level] = Programs(worker, level) if has_processes() else Here(worker, Outcome)
    return _programs[worker, level]


def cpu_s() -> float:
    """Processor time that the boxes of this process have used so far."""
    return sum(one.cpu_s + one.own_cpu_s for each in _programs.values() for one in each.all)


def stop_all() -> None:
    for one in _programs.values():
        one.stop()
    _programs.clear()
