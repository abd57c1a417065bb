"""Run the referee's end of the GPU, a builder that makes machine code of IR, and a bench that launches and times code."""

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

from grader.bench import protocol
from grader.bench.protocol import BuildRequest, Built, Kernel, RunRequest
from grader.box.pipes import read_exactly
from grader.box.serve import frames
from grader.box.warm import JailTrouble, cores

BUILD_S = 1000  # more than the processor time that all kernels of a request may take
START_S = 240  # to load torch and triton
BENCH_S = 240
COMPUTED = 0.5  # of that time, because waiting for a GPU computes, and a starved process isn't to blame


class Broken(Exception):
    """The answer's own fault on the GPU, as a sentence."""


@contextmanager
def gpu_lock():
    """One process at a time makes this machine's GPU work."""
    import fcntl  # only with a bench, because other systems import this module too

    with open(
        Path(tempfile.gettempdir()) / f"tile-by-tile-gpu-{os.getuid()}.lock", "w", encoding="ascii"
    ) as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


class _Program:
    """Run one of the two programs, in a session of its own, so that its children end with the program."""

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

    def cpu_s(self) -> float:
        """Return the processor seconds so far, or none if the system doesn't tell."""
        try:
            fields = (
                Path(f"/proc/{self.process.pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
            )
            return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
        except (OSError, ValueError, IndexError):
            return 0.0

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
    """Makes machine code of IR. It sees nothing of the answer but that text, and nothing meets the GPU yet."""

    def __init__(self):
        self.program, self.stopped, self.late = None, False, False

    def build(self, kernels: list[Kernel], capability: int, say: Callable[[str], None]) -> dict[int, str]:
        """Return, for each kernel without machine code, its number and the reason."""
        if self.stopped:
            return {}
        self.program = _Program("grader.bench.inside.build")
        clock = threading.Timer(BUILD_S, self._too_late)
        clock.start()
        try:
            request = BuildRequest(tuple(kernels), capability, min(cores(), 8))
            return self._built(request, say)
        except (OSError, ValueError) as error:
            if self.late:  # processor time has limits of its own, so this machine was busy
                raise JailTrouble(f"the builder was still compiling after {BUILD_S} s") from error
            said = "" if self.stopped else self.program.said()
            raise JailTrouble(f"the builder broke off: {said[-400:]}") from error
        finally:
            clock.cancel()
            self.program.stop()

    def _built(self, request: BuildRequest, say) -> dict[int, str]:
        failed, count = {}, len(request.kernels)
        what = f"compiling {count} kernels for sm_{request.capability}"
        say(f"{what} … 0/{count}")
        with self.program.process.stdin as pipe:
            pipe.write(json.dumps(request.header()).encode())
        for done in range(1, count + 1):
            built = Built(**json.loads(self.program.process.stdout.readline()))
            if built.failed:
                failed[built.number] = built.failed
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
    """Holds the GPU's side of an answer. It may start early, because only a request makes the GPU work."""

    def __init__(self):
        self.program, self.ready = None, False

    def start(self) -> None:
        self.program = self.program or _Program("grader.bench.inside.main")

    def ask(self, request: RunRequest, arrays: dict) -> tuple[protocol.Reply, dict]:
        """Send one request and return its first reply. Trouble is ours, unless the reply says that the answer could
        not run."""
        with closing(self.stream(request, arrays)) as replies:
            return next(replies)

    def stream(self, request: RunRequest, arrays: dict) -> Iterator[tuple[protocol.Reply, dict]]:
        """The replies to one request, one after another."""
        self.start()
        nonce = secrets.token_hex(16)
        block = frames.pack({**request.header(), "nonce": nonce}, arrays)
        with gpu_lock():
            try:
                self._wait_until_ready()
                self.program.process.stdin.write(frames.LENGTH.pack(len(block)) + block)
                self.program.process.stdin.flush()
                for kind in request.replies:
                    yield self._receive(request, kind, nonce)
            except (OSError, EOFError) as error:
                raise self._broke_off() from error

    def _wait_until_ready(self) -> None:
        if not self.ready:
            try:
                self._read(len(protocol.READY), time.monotonic() + START_S)
            except TimeoutError:
                raise JailTrouble(f"the bench was not ready after {START_S} s") from None
        self.ready = True

    def _receive(self, request: RunRequest, kind: type, nonce: str) -> tuple[protocol.Reply, dict]:
        deadline, before = time.monotonic() + BENCH_S, self.program.cpu_s()
        try:
            header, found = frames.unpack(frames.read_block(lambda count: self._read(count, deadline)))
        except TimeoutError:
            raise self._late(self.program.cpu_s() - before) from None
        if header.get("nonce") != nonce:
            raise JailTrouble("the bench answered another request")
        try:
            reply = protocol.reply_of(header)
            if isinstance(reply, protocol.Failed):
                raise Broken(f"does not run on this GPU: {reply.why}")
            protocol.require_reply(request, kind, reply, found)
        except protocol.BadReply as bad:
            raise JailTrouble(f"the bench answered {bad}") from None
        return reply, found

    def _read(self, count: int, deadline: float) -> bytes:
        return read_exactly(self.program.process.stdout.fileno(), count, deadline)

    def _late(self, computed_s: float) -> Exception:
        """Judge a launch that doesn't end. Its host polls the GPU on a processor. If only the wall clock is exceeded,
        the answer isn't to blame."""
        if computed_s >= COMPUTED * BENCH_S:
            return Broken(f"was still running on the GPU after {BENCH_S} s and was stopped")
        return JailTrouble(
            f"the bench was not done after {BENCH_S} s, of which it computed {computed_s:.0f}: this machine was too busy"
        )

    def _broke_off(self) -> Exception:
        said = self.program.said()
        if "illegal memory access" in said or "misaligned address" in said:
            return Broken("reached memory outside its tensors on the GPU (illegal memory access)")
        return JailTrouble(f"the bench broke off: {said[-400:]}")

    def stop(self) -> None:
        if self.program:
            self.program.stop()
        self.program, self.ready = None, False
