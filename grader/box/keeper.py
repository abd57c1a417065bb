"""Keep one box, as a small trusted process outside the box that ends it in time.

Runs as `python -I -S -B keeper.py SPEC PROGRAM ...`, and imports nothing of ours. It starts the program and watches
clock, memory and scratch folder. It kills all when a limit is passed, when the program ends, or when the lifeline (a
pipe from the referee) closes, so a referee that dies ends its boxes, too. It is a process and not a thread of the
referee, because the kernel's "die with parent" means the parent's thread.
"""

import json
import math
import os
import select
import signal
import stat
import subprocess
import sys
import time

TICK_S, IDLE_TICK_S = 0.05, 0.4
MOST_FILES = 20_000
PR_SET_CHILD_SUBREAPER = 36


def _fields(pid):
    """Return the kernel's fields of a process after its name, from the state on, or None if it is gone."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            return file.read().rpartition(")")[2].split()
    except OSError:
        return None


def _children(pid):
    try:
        tasks = os.listdir(f"/proc/{pid}/task")
    except OSError:
        return []
    found = []
    for task in tasks:
        try:
            with open(f"/proc/{pid}/task/{task}/children", encoding="utf-8") as file:
                found += [int(child) for child in file.read().split()]
        except OSError:
            continue
    return found


def descendants(root, session):
    """Return every process below this one. Orphans are included, because we are their subreaper. Without /proc
    (macOS) they are invisible."""
    if not os.path.exists(f"/proc/{root}/task/{root}/children"):
        return members(root, session) if os.path.isdir("/proc/self") else []
    found, todo = [], [root]
    while todo:
        new = _children(todo.pop())
        found += new
        todo += new
    return found


def members(root, session):
    """Return the box's processes by a full search, below us and anywhere in the program's session."""
    known = _everyone()
    inside, grew = {root}, True
    while grew:
        before = len(inside)
        inside |= {p for p, (parent, its_own) in known.items() if parent in inside or its_own == session}
        grew = len(inside) > before
    return sorted(inside - {root})


def _everyone():
    """Return {process: (parent, session)} of all that live, by `ps` if there is no /proc (macOS)."""
    if os.path.isdir("/proc/self"):
        found = {int(name): _fields(name) for name in os.listdir("/proc") if name.isdigit()}
        return {p: (int(f[1]), int(f[3])) for p, f in found.items() if f and f[0] not in "ZX"}
    with subprocess.Popen(["ps", "-axo", "pid=,ppid=,stat="], stdout=subprocess.PIPE, text=True) as ps:
        rows = [line.split() for line in ps.stdout]
    rows = [(int(pid), int(parent)) for pid, parent, state in rows if not state.startswith("Z")]
    return {pid: (parent, _session(pid)) for pid, parent in rows if pid != ps.pid}


def _session(pid):
    try:
        return os.getsid(pid)
    except OSError:
        return None


def sweep(root, session, bury=True, seconds=5.0):
    """Kills all of the box, again and again until nothing is left. True when nothing is.

    Only the keeper, which has no other children, may `bury` every child of its own that has ended.
    """
    deadline = time.monotonic() + seconds
    while True:
        try:
            os.killpg(session, signal.SIGKILL)
        except (ProcessLookupError, PermissionError):
            pass
        left = members(root, session)
        for pid in left:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        while bury and _wait()[0]:
            pass
        if not left or time.monotonic() > deadline:
            return not left
        time.sleep(0.002)


def _wait():
    """Return one child that has ended, as (pid, status), with pid 0 if there is none."""
    try:
        return os.waitpid(-1, os.WNOHANG)
    except ChildProcessError:
        return 0, 0


def usage_of(pids, limit):
    """Return (bytes in use by all, processor seconds of each). Shared pages are divided only past the limit."""
    page, tick = os.sysconf("SC_PAGESIZE"), os.sysconf("SC_CLK_TCK")
    found = [fields for pid in pids if (fields := _fields(pid))]
    total = sum(int(fields[21]) * page for fields in found)
    cpu_s = [(int(fields[11]) + int(fields[12])) / tick for fields in found]
    return (total if total <= limit else sum(map(_proportional, pids))), cpu_s


def _proportional(pid):
    """Return the exact bytes in use by a process, with shared pages divided among their sharers. This is far more
    costly."""
    try:
        with open(f"/proc/{pid}/smaps_rollup", encoding="utf-8") as file:
            return sum(int(line.split()[1]) << 10 for line in file if line.startswith("Pss:"))
    except OSError:
        return 0


def scratch_of(folder, pids, limit):
    """Bytes that the box holds in a scratch folder on a real disk, deleted but open files included."""
    total, count = 0, 0
    for where, _, names in os.walk(folder):
        for name in names:
            try:
                total += os.lstat(os.path.join(where, name)).st_blocks * 512
            except OSError:
                continue
        count += len(names) + 1
        if total > limit or count > MOST_FILES:
            return limit + 1
    for pid in pids:
        try:
            opened = [os.stat(f"/proc/{pid}/fd/{fd}") for fd in os.listdir(f"/proc/{pid}/fd")]
        except OSError:
            continue
        total += sum(s.st_blocks * 512 for s in opened if s.st_nlink == 0 and stat.S_ISREG(s.st_mode))
    return total


def clear(folder):
    """Remove a folder that a stranger wrote in. Closed folders are opened first, links are never followed."""
    import shutil

    for where, folders, _ in os.walk(folder):
        for name in folders:
            path = os.path.join(where, name)
            if stat.S_ISDIR(os.lstat(path).st_mode):
                os.chmod(path, 0o700)
    shutil.rmtree(folder, ignore_errors=True)


class Watch:
    """Looks at a box, twenty times a second while it works, until it ends or passes a limit."""

    def __init__(self, child, spec):
        self.child, self.spec = child, spec
        self.end = math.inf if spec["wall_s"] is None else time.monotonic() + spec["wall_s"]
        self.pause, self.ticks, self.spent, self.cpu_s = TICK_S, 0, 0.0, 0.0

    def over(self):
        """Return the passed limit, or None."""
        spec = self.spec
        if time.monotonic() >= self.end:
            return "wall"
        pids = descendants(os.getpid(), self.child)
        memory, cpu_s = usage_of(pids, spec["memory_bytes"])
        self.pause = TICK_S if sum(cpu_s) != self.spent else min(2 * self.pause, IDLE_TICK_S)
        self.spent, self.cpu_s, self.ticks = sum(cpu_s), max([self.cpu_s, *cpu_s]), self.ticks + 1
        if len(pids) > spec["processes"]:
            return "processes"
        if memory > spec["memory_bytes"]:
            return "memory"
        look = spec["scratch"] and self.ticks % 5 == 0  # walking a disk costs more than reading numbers
        if look and scratch_of(spec["scratch"], pids, spec["scratch_bytes"]) > spec["scratch_bytes"]:
            return "scratch"
        return None

    def until_the_end(self, lifeline, woken):
        """(why, exit status or None). Looks on time even when a flood of ending children keeps waking us."""
        look = time.monotonic() + TICK_S
        while True:
            for _ in range(64):  # the box's orphans come to us to be buried
                pid, status = _wait()
                if pid == self.child:
                    return "ended", os.waitstatus_to_exitcode(status)
                if not pid:
                    break
            pause = max(0.0, min(look, self.end) - time.monotonic())
            ready = select.select([lifeline, woken], [], [], pause)[0]
            if lifeline in ready:
                return "killed", None
            if woken in ready:
                os.read(woken, 4096)
            if time.monotonic() >= min(look, self.end):
                if why := self.over():
                    return why, None
                look = time.monotonic() + self.pause


def main(spec, program):
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, *(ctypes.c_ulong(n) for n in (1, 0, 0, 0)))
    woken, wake = os.pipe()
    os.set_blocking(wake, False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
    started = subprocess.Popen(
        program, pass_fds=(spec["report_fd"], *spec["pass_fds"]), start_new_session=True
    )
    ended = {"why": "lost", "status": None}
    watch = Watch(started.pid, spec)
    try:
        _say(spec, {"session": started.pid})
        null = os.open(os.devnull, os.O_RDWR)
        for fd in (0, 1, 2, *spec["pass_fds"]):
            os.dup2(null, fd)  # so that the pipes end when the program's own ends do
        why, status = watch.until_the_end(spec["lifeline_fd"], woken)
        ended = {"why": why, "status": status}
    finally:
        clean = sweep(os.getpid(), started.pid)
        clear(spec["clear"])
        _say(spec, ended | {"cpu_s": watch.cpu_s, "clean": clean})


def _say(spec, words):
    try:
        os.write(spec["report_fd"], json.dumps(words).encode() + b"\n")
    except BrokenPipeError:
        pass  # the referee is gone, as its lifeline also shows


if __name__ == "__main__":
    main(json.loads(sys.argv[1]), sys.argv[2:])
