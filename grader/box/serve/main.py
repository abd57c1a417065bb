"""Serve inside every box: a fork server that hands each request to a worker in a child of its own.

    python -I -B main.py FOLDER MODULE SHOWN...

FOLDER is the checkout, whose entries SHOWN the box holds. MODULE has prepare() and run(task, arrays) ->
(header, arrays). Framed requests come on stdin. A child's output is passed on in chunks that a dying child cannot
leave half open, then one status line closes the answer.
"""

import json
import os
import resource
import select
import signal
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from tasks import CHUNK, U32, Ready  # noqa: E402

TICK_S = 0.2
SHARED = "BOX_SHARED_MEMORY"  # names the folder for shared memory, where it is this box's own


def limit(task: dict) -> None:
    limits = task.get("limits", {})
    cpu = int(limits.get("cpu_s", 60))
    resource.setrlimit(resource.RLIMIT_CPU, (cpu, cpu + 2))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if limits.get("memory_bytes"):
        with open("/proc/self/statm", encoding="ascii") as file:
            used = int(file.read().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (used + limits["memory_bytes"],) * 2)


def child(block: bytes, out: int, ready: Ready) -> None:
    """Runs one task and writes one frame to `out`."""
    data = ready.done(block, limit)
    while data:
        data = data[os.write(out, data) :]


PR_SET_DUMPABLE, PR_SET_CHILD_SUBREAPER = 4, 36


def stand_apart() -> None:
    """Stop children from looking into this process's memory, and adopt whatever a child leaves running."""
    import ctypes

    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(PR_SET_DUMPABLE, 0, 0, 0, 0)
    libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def left_behind(nice: int) -> bool:
    """Return whether the last answer left a process, files or another priority for the next one to meet. Files are
    removed first."""
    import shutil

    folders = [".", *filter(None, [os.environ.get(SHARED)])]
    for entry in [one for folder in folders for one in os.scandir(folder)]:
        if entry.is_dir(follow_symlinks=False):
            shutil.rmtree(entry.path, ignore_errors=True)
        else:
            os.unlink(entry.path)
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
        return True  # alive, and not ours
    except ChildProcessError:
        return any(map(os.listdir, folders)) or priority() != nice


def priority() -> int:
    return os.getpriority(os.PRIO_PROCESS, 0)


def serve_one(block: bytes, task_wall: float, ready: Ready, out) -> None:
    reader, writer = os.pipe()
    started, nice = time.monotonic(), priority()
    pid = os.fork()
    if pid == 0:
        try:
            os.close(reader)
            os.setpgid(0, 0)
            null = os.open(os.devnull, os.O_RDWR)
            for fd in (0, 1, 2):
                os.dup2(null, fd)
            child(block, writer, ready)
        finally:
            os._exit(0)
    os.close(writer)
    late, ended = pass_on(pid, reader, started + task_wall, out)
    os.close(reader)
    finish(pid, late, ended, started, nice, out)


def waited_s(pid: int) -> float | None:
    """Return the seconds that a process was ready to run and had no processor, or None if the system doesn't tell."""
    try:
        with open(f"/proc/{pid}/schedstat", encoding="ascii") as file:
            return int(file.read().split()[1]) / 1e9
    except (OSError, ValueError, IndexError):
        return None


def children_cpu_s(pid: int) -> float:
    """Return the processor seconds of the task's processes that still run, and of children they waited for. Orphans
    belong to this process now. The task's own account has the children that it waited for."""
    parents, seconds, tick = {}, {}, os.sysconf("SC_CLK_TCK")
    for name in filter(str.isdecimal, os.listdir("/proc")):
        try:
            with open(f"/proc/{name}/stat", encoding="utf-8", errors="replace") as file:
                fields = file.read().rpartition(")")[2].split()
        except OSError:  # it has ended meanwhile
            continue
        parents[int(name)] = int(fields[1])
        seconds[int(name)] = sum(map(int, fields[11:15])) / tick
    ours = {os.getpid()}
    while new := {one for one, parent in parents.items() if parent in ours} - ours:
        ours |= new
    return sum(seconds[one] for one in ours - {os.getpid(), pid})


def pass_on(pid: int, reader: int, deadline: float, out) -> tuple[bool, tuple | None]:
    """Passes on what the child writes until it has ended, even where a child of its own still holds the pipe."""
    ended = None
    while time.monotonic() < deadline:
        pause = 0.0 if ended else min(TICK_S, max(0.0, deadline - time.monotonic()))
        if select.select([reader], [], [], pause)[0]:
            data = os.read(reader, CHUNK)
            if not data:
                return False, ended
            out.write(U32.pack(len(data)) + data)
            out.flush()
        elif ended:
            return False, ended
        else:
            found, *rest = os.wait4(pid, os.WNOHANG)
            ended = tuple(rest) if found else None
    return True, ended


def finish(pid: int, late: bool, ended: tuple | None, started: float, nice: int, out) -> None:
    waited = None if ended else waited_s(pid)
    beside = children_cpu_s(pid) if late else 0.0
    for kill in (os.killpg, os.kill) if not ended else (os.killpg,):
        try:
            kill(pid, signal.SIGKILL)
        except (ProcessLookupError, PermissionError):
            pass
    status, usage = ended or os.wait4(pid, 0)[1:]
    code = os.waitstatus_to_exitcode(status)
    report = {"late": late, "exit": code, "seconds": time.monotonic() - started, "peak_kb": usage.ru_maxrss}
    report |= {"cpu_s": usage.ru_utime + usage.ru_stime, "own_cpu_s": time.process_time()}
    report |= {"left_behind": left_behind(nice), "waited_s": waited, "children_cpu_s": beside}
    text = json.dumps(report).encode()
    out.write(U32.pack(0) + U32.pack(len(text)) + text)
    out.flush()


def main(folder: str, module: str, *shown: str) -> None:
    ready = Ready(folder, module, list(shown))
    stand_apart()
    out = sys.stdout.buffer
    out.write(b"ready\n")
    out.flush()
    for wall, block in ready.requests(sys.stdin.buffer):
        serve_one(block, wall, ready, out)


if __name__ == "__main__":
    main(*sys.argv[1:])
