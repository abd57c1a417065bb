"""The program inside every box: a fork server that hands each request to a worker in a child of its own.

    python -I -B main.py FOLDER MODULE SHOWN...

FOLDER is the checkout, of which the box holds what SHOWN names; MODULE has prepare() and run(task, arrays) -> (header, arrays). Framed requests come on
stdin; what a child writes is passed on in chunks that a dying child cannot leave half open, then one status line
closes the answer.
"""

import importlib
import importlib.util
import json
import os
import resource
import select
import signal
import struct
import sys
import time
import types

HERE = os.path.dirname(os.path.abspath(__file__))
CHUNK = 1 << 16
TICK_S = 0.2
SHARED = "BOX_SHARED_MEMORY"  # names the folder for shared memory, where it is this box's own
U32 = struct.Struct("<I")


def limit(task: dict) -> None:
    limits = task.get("limits", {})
    cpu = int(limits.get("cpu_s", 60))
    resource.setrlimit(resource.RLIMIT_CPU, (cpu, cpu + 2))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if limits.get("memory_bytes") and sys.platform == "linux":
        used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (used + limits["memory_bytes"],) * 2)


def report_of(error: BaseException) -> dict:
    return importlib.import_module("reported").report_of(error)


def child(block: bytes, out: int, worker, frames, printed) -> None:
    """Runs one task and writes one frame to `out`."""
    sys.stdout = sys.stderr = printed
    task, arrays = frames.unpack(block)
    limit(task)
    result = {}
    try:
        header, result = worker.run(task, arrays)
    except BaseException as error:
        header = {"error": report_of(error)}
    header = {**header, "nonce": task["nonce"], "printed": header.get("printed") or printed.text()}
    try:
        data = memoryview(frames.pack(header, result))
    except MemoryError as error:
        result.clear()
        data = memoryview(frames.pack({"error": report_of(error), "nonce": task["nonce"]}, {}))
    while data:
        data = data[os.write(out, data) :]


PR_SET_DUMPABLE, PR_SET_CHILD_SUBREAPER = 4, 36


def stand_apart() -> None:
    """No child may look into this process's memory, and whatever a child leaves behind becomes ours to see."""
    if sys.platform == "linux":
        import ctypes

        libc = ctypes.CDLL(None, use_errno=True)
        libc.prctl(PR_SET_DUMPABLE, 0, 0, 0, 0)
        libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def left_behind(nice: int) -> bool:
    """Whether the last answer left a process, files or another priority for the next one to meet; files are cleared
    away first."""
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


def serve_one(block: bytes, task_wall: float, worker, frames, printed, out) -> None:
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
            child(block, writer, worker, frames, printed)
        finally:
            os._exit(0)
    os.close(writer)
    late, ended = pass_on(pid, reader, started + task_wall, out)
    os.close(reader)
    finish(pid, late, ended, started, nice, out)


def waited_s(pid: int) -> float | None:
    """Seconds that a process was ready to run and had no processor; None where the system does not tell."""
    try:
        with open(f"/proc/{pid}/schedstat") as file:
            return int(file.read().split()[1]) / 1e9
    except (OSError, ValueError, IndexError):
        return None


def children_cpu_s(pid: int) -> float:
    """Processor seconds of the processes that a task started and that still run, and of what they started and waited for:
    orphans are this process's own now. The task's own account tells those that it waited for."""
    parents, seconds, tick = {}, {}, os.sysconf("SC_CLK_TCK")
    for name in filter(str.isdecimal, os.listdir("/proc") if sys.platform == "linux" else ()):
        try:
            with open(f"/proc/{name}/stat") as file:
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


def read_exactly(stream, count: int) -> bytes:
    data = stream.read(count)
    if len(data) != count:
        raise EOFError
    return data


def stand_in_for_parents(folder: str, shown: list[str]) -> None:
    """Make packages above and of what is shown bare names with this checkout's path, whatever else is installed.

    A box may not list what surrounds it, so a module that is shown alone is loaded by its path.
    """
    for path in shown:
        *parts, last = path.split("/")
        parts += [] if last.endswith(".py") else [last]
        for depth in range(1, len(parts) + 1):
            package = types.ModuleType(".".join(parts[:depth]))
            package.__path__ = [os.path.join(folder, *parts[:depth])]
            sys.modules.setdefault(package.__name__, package)
        if last.endswith(".py"):
            name = ".".join([*parts, last.removesuffix(".py")])
            spec = importlib.util.spec_from_file_location(name, os.path.join(folder, path))
            sys.modules[name] = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(sys.modules[name])
            setattr(sys.modules[".".join(parts)], last.removesuffix(".py"), sys.modules[name])


def main(folder: str, module: str, *shown: str) -> None:
    sys.path.insert(0, HERE)
    stand_in_for_parents(folder, list(shown))
    frames, printed, _ = (importlib.import_module(name) for name in ("frames", "printed", "reported"))
    worker = importlib.import_module(module)
    worker.prepare()
    stand_apart()
    stdin, out = sys.stdin.buffer, sys.stdout.buffer
    out.write(b"ready\n")
    out.flush()
    while True:
        try:
            (wall,) = struct.unpack("<d", read_exactly(stdin, 8))
            (size,) = frames.LENGTH.unpack(read_exactly(stdin, frames.LENGTH.size))
            block = read_exactly(stdin, size)
        except EOFError:
            return
        serve_one(block, wall, worker, frames, printed.Printed(), out)


if __name__ == "__main__":
    main(*sys.argv[1:])
