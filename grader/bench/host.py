"""The referee's end of the GPU: a builder that makes machine code of IR, and a bench that launches and times it."""

import fcntl
import json
import os
import secrets
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

from grader.box.pipes import read_exactly
from grader.box.serve import frames
from grader.box.warm import JailTrouble, cores

BUILD_S = 240
BENCH_S = 240


class Broken(Exception):
    """The answer's own fault on the GPU, as a sentence."""


@contextmanager
def gpu_lock():
    """One process at a time makes this machine's GPU work."""
    with open(Path(tempfile.gettempdir()) / f"tile-by-tile-gpu-{os.getuid()}.lock", "w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


class _Program:
    """One of the two programs, in a session of its own, so that all it started ends with it."""

    def __init__(self, module: str):
        self.errors = tempfile.TemporaryFile()
        kept = {key: value for key, value in os.environ.items() if key != "TRITON_INTERPRET"}
        self.process = subprocess.Popen(
            [sys.executable, "-m", module],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.errors,
            env={**kept, "PYTHONPATH": str(Path(__file__).parents[2])},
            start_new_session=True,
        )
        self.stopped = False

    def said(self) -> str:
        self.errors.seek(0)
        return self.errors.read().decode(errors="replace").strip()[-4000:]

    def stop(self) -> None:
        if self.stopped:
            return
        self.stopped = True
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        with suppress(OSError):  # what a dead program no longer reads
            self.process.stdin.close()
        self.process.stdout.close()
        self.errors.close()


class Builder:
    """Makes machine code of IR. Nothing of the answer but that text comes here, and none of it meets the GPU yet."""

    def __init__(self):
        self.program, self.stopped, self.late = None, False, False

    def build(self, kernels: list[dict], capability: int, say: Callable[[str], None]) -> dict[int, str]:
        """For each kernel ({"ir", "settings"}) that has no machine code: its number and the reason."""
        if self.stopped:
            return {}
        self.program = _Program("grader.bench.inside.build")
        clock = threading.Timer(BUILD_S, self._too_late)
        clock.start()
        try:
            return self._built(kernels, capability, say)
        except (OSError, ValueError) as error:
            if self.late:  # a kernel's processor time has a limit of its own, so this machine was busy
                raise JailTrouble(f"the builder was still compiling after {BUILD_S} s") from error
            said = "" if self.stopped else self.program.said()
            raise JailTrouble(f"the builder broke off: {said[-400:]}") from error
        finally:
            clock.cancel()
            self.program.stop()

    def _built(self, kernels: list[dict], capability: int, say) -> dict[int, str]:
        request = {"kernels": kernels, "capability": capability, "jobs": min(cores(), 8)}
        failed, count = {}, len(kernels)
        what = f"compiling {count} kernels for sm_{capability}"
        say(f"{what} … 0/{count}")
        with self.program.process.stdin as pipe:
            pipe.write(json.dumps(request).encode())
        for done in range(1, count + 1):
            row = json.loads(self.program.process.stdout.readline())
            if row["failed"]:
                failed[row["number"]] = row["failed"]
            say(f"{what} … {done}/{count}")
        return failed

    def _too_late(self) -> None:
        self.late = True
        self.stop()

    def stop(self) -> None:
        self.stopped = True
        if self.program:
            self.program.stop()


class Bench:
    """Holds the GPU's side of an answer. It may start early: only a request makes the GPU work."""

    def __init__(self):
        self.program = None

    def start(self) -> None:
        self.program = self.program or _Program("grader.bench.inside.main")

    def ask(self, header: dict, arrays: dict) -> tuple[dict, dict]:
        """One request and its answer; its trouble is ours, unless it says that the answer could not run."""
        with closing(self.stream(header, arrays)) as answers:
            return next(answers)

    def stream(self, header: dict, arrays: dict) -> Iterator[tuple[dict, dict]]:
        """The answers to one request, until one says that no more come."""
        self.start()
        nonce, more = secrets.token_hex(16), True
        block = frames.pack({**header, "nonce": nonce}, arrays)
        with gpu_lock():
            try:
                self.program.process.stdin.write(frames.LENGTH.pack(len(block)) + block)
                self.program.process.stdin.flush()
                while more:
                    report, found = self._receive(nonce)
                    more = report.get("more")
                    yield report, found
            except TimeoutError:
                raise Broken(f"was still running on the GPU after {BENCH_S} s and was stopped") from None
            except (OSError, EOFError) as error:
                raise self._broke_off() from error

    def _receive(self, nonce: str) -> tuple[dict, dict]:
        fd, deadline = self.program.process.stdout.fileno(), time.monotonic() + BENCH_S
        report, found = frames.unpack(frames.read_block(lambda count: read_exactly(fd, count, deadline)))
        if report.get("nonce") != nonce:
            raise JailTrouble("the bench answered another request")
        if "failed" in report:
            raise Broken(f"does not run on this GPU: {report['failed']}")
        return report, found

    def _broke_off(self) -> Exception:
        said = self.program.said()
        if "illegal memory access" in said or "misaligned address" in said:
            return Broken("reached memory outside its tensors on the GPU (illegal memory access)")
        return JailTrouble(f"the bench broke off: {said[-400:]}")

    def stop(self) -> None:
        if self.program:
            self.program.stop()
        self.program = None
