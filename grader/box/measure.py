"""Measure which level this machine really has, by trying the attacks inside each box."""

import json
import os
import select
import socket
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from grader.box import mounts
from grader.box.launch import spawn
from grader.box.limits import BoxError, Level, Limits

PROGRAM = Path(__file__).parent / "attacks"
WORTH_WRITING = ["/", "/tmp", "/var/tmp", "/dev", "/usr", "/proc"]
SMALL = Limits(wall_s=15, cpu_s=10, memory_bytes=256 << 20, processes=16, file_bytes=2 << 20)

# attack -> (its description, the lowest level that promises to hold it back)
ATTACKS = {
    "network": ("connect to a port of this machine", 2),
    "dns": ("send a datagram", 2),
    "vsock": ("reach the host of a virtual machine", 2),
    "netlink": ("reach the kernel's network settings", 2),
    "unix_socket": ("reach a service by its socket file", 2),
    "read_home": ("read the home folder", 2),
    "read_project": ("read the course and its checks", 2),
    "write_outside": ("write to the environment, home or system", 2),
    "change_outside": ("change files without opening them", 2),
    "see_processes": ("see other processes", 3),
    "other_memory": ("read the memory of another process", 2),
    "signals": ("send signals to other processes", 3),
    "ptrace": ("attach to a process", 2),
    "namespaces": ("make namespaces", 2),
    "privileges": ("become root, mount, chroot, raise a limit", 2),
    "kernel_doors": ("reach rarely used parts of the kernel", 2),
    "descriptors": ("use open files of the caller", 1),
    "environment": ("read the caller's environment", 1),
    "memory": ("use more memory than allowed", 1),
    "file_size": ("write a file larger than allowed", 1),
    "shared_memory": ("fill /dev/shm", 2),
    "scratch": ("fill the scratch folder", 3),
    "daemon": ("leave a process behind", 1),
    "processes": (
        "start more processes than allowed",
        2,
    ),  # the last one ends everything where only the keeper sees it
}
QUICK = [
    "network",
    "vsock",
    "read_home",
    "read_project",
    "write_outside",
    "privileges",
    "kernel_doors",
    "namespaces",
]


@dataclass(frozen=True)
class Measured:
    """Holds the result for a level: attack -> (held, the attack's observation)."""

    level: Level | None
    rows: dict = field(default_factory=dict)
    trouble: str = ""  # why the box would not start

    def broken(self) -> dict:
        """The promises that were not kept."""
        promised = {
            name: text for name, (text, least) in ATTACKS.items() if self.level and least <= self.level
        }
        return {n: self.rows[n][1] for n in promised if n in self.rows and not self.rows[n][0]}

    def why_not(self) -> str:
        return self.trouble or "; ".join(f"{ATTACKS[name][0]}: {saw}" for name, saw in self.broken().items())


def try_attacks(level: Level | None, names=tuple(ATTACKS)) -> Measured:
    """Run attacks in a box of this level. With None they run without a box, to show that they work."""
    with _targets() as (facts, victim):
        try:
            rows = _run(level, facts, names)
        except BoxError as error:
            return Measured(level, trouble=str(error))
        if "signals" in rows and victim.poll() is not None:
            rows["signals"] = [False, "ended a process of the caller"]
        return Measured(level, rows)


@contextmanager
def _targets():
    """Make ports, a service, a secret and a process as targets, so that the attacks touch nothing else."""
    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="box-"))
        os.chmod(folder, 0o755)
        marker = f"box-victim-{os.urandom(8).hex()}"
        tcp = _listener(stack, socket.AF_INET, ("127.0.0.1", 0))
        _listener(stack, socket.AF_UNIX, f"{folder}/service")
        _listener(stack, socket.AF_UNIX, f"\0{marker}")
        os.chmod(f"{folder}/service", 0o777)
        secret = _secret_in_home()
        if secret:
            stack.callback(os.unlink, secret)
        os.environ["BOX_PROBE_SECRET"] = "1"
        stack.callback(os.environ.pop, "BOX_PROBE_SECRET", None)
        leak = os.open(os.devnull, os.O_RDONLY)
        stack.callback(os.close, leak)
        os.set_inheritable(leak, True)
        sleeper = [sys.executable, "-I", "-S", "-c", "import time; time.sleep(60)", marker]
        victim = stack.enter_context(subprocess.Popen(sleeper, cwd="/"))
        stack.callback(victim.kill)
        facts = {
            "port": tcp.getsockname()[1],
            "unix": [f"{folder}/service", f"@{marker}"],
            "home": [secret] if secret else [],
            "project": [str(Path(__file__)), str(Path(__file__).with_name("limits.py"))],
            "write": [sys.prefix, sys.base_prefix, *WORTH_WRITING, *map(str, mounts.homes())],
            "victim": victim.pid,
            "marker": marker,
            "memory_bytes": SMALL.memory_bytes,
            "file_bytes": SMALL.file_bytes,
            "processes": SMALL.processes,
        }
        yield facts, victim


def _listener(stack, family, address):
    listener = stack.enter_context(socket.socket(family))
    listener.bind(address)
    listener.listen()
    return listener


def _run(level, facts, names):
    daemon_end, kept = os.pipe()
    line = json.dumps(facts | {"fds": [kept]}).encode() + b"\n"
    program = [sys.executable, "-I", "-B", str(PROGRAM / "run.py"), *names]
    try:
        if level is None:
            output, trouble = _unboxed(program, line, kept), ""
        else:
            with spawn(program, level=level, readonly=[PROGRAM], limits=SMALL, pass_fds=[kept]) as box:
                box.stdin.write(line)
                output = box.stdout.read()
                box.wait(5.0)
                trouble = f"{box.reason()} {box.stderr_tail(600)}"
        os.close(kept)
        kept = None
        rows = {name: [held, saw] for name, held, saw in map(json.loads, output.splitlines())}
        if trouble.startswith("started more than"):
            rows["processes"] = [True, "the keeper ended it"]
        missing = [name for name in names if name not in rows]
        if missing:
            raise BoxError(f"the attacks broke off at {missing[0]!r}: {trouble.strip()}")
        if "daemon" in rows and not select.select([daemon_end], [], [], 0.2)[0]:
            rows["daemon"] = [False, "it was still there when the box had ended"]
        return rows
    finally:
        os.close(daemon_end)
        if kept is not None:
            os.close(kept)


def _unboxed(program, line, kept) -> bytes:
    """Run the attacks as a careless grader would, with everything inherited."""
    os.set_inheritable(kept, True)
    environment = os.environ | {"BOX_INSIDE": str(mounts.INSIDE)}
    with tempfile.TemporaryDirectory(prefix="box-") as folder:
        return subprocess.run(
            program, input=line, stdout=subprocess.PIPE, cwd=folder, env=environment, close_fds=False
        ).stdout


def overhead_s(level: Level, times: int = 5) -> float:
    """Return the time that a box of this level adds to a run. Compares the shortest runs, since other work on this
    machine can only add time."""
    program = [sys.executable, "-I", "-S", "-c", "pass"]

    def seconds(run) -> float:
        started = time.perf_counter()
        run()
        return time.perf_counter() - started

    boxed = min(seconds(lambda: spawn(program, level=level).wait()) for _ in range(times))
    return boxed - min(seconds(lambda: subprocess.run(program, check=True)) for _ in range(times))


def _secret_in_home() -> str | None:
    try:
        handle, path = tempfile.mkstemp(prefix=".box-secret-", dir=mounts.homes()[0])
    except (OSError, IndexError):
        return None
    os.write(handle, b"secret")
    os.fchmod(handle, 0o644)  # so that only a wall can hide it
    os.close(handle)
    return path
