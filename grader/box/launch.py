"""Build the walls of a level around a program and start the program."""

import json
import os
import platform
import random
import secrets
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from grader.box import bubblewrap, mounts, systems
from grader.box.box import Box
from grader.box.limits import BoxError, Level, Limits

KEEPER = Path(__file__).with_name("keeper.py")
SPARE_USERS = range(61184, 65520)  # what systemd, too, lends to short-lived services
OPEN_FILES = 256
DEVICES = ["/dev/null", "/dev/zero", "/dev/random", "/dev/urandom"]


def spawn(argv, *, level, readonly=(), job_dir=None, limits=Limits(), env=None, pass_fds=()) -> Box:
    """Start a program in a box of this level. Return once the program itself begins.

    It sees /usr, the interpreter, the virtual environment and `readonly`, and writes only to `scratch`, which is its
    working, home and temporary folder. It also sees the caller's `job_dir`, read-only, which contains scratch.
    Without a `job_dir`, a private folder is made. `pass_fds` keep their numbers. BoxError means that the walls can't
    be raised."""
    if not systems.has_boxes():
        raise BoxError(f"the system must be Linux, got {systems.name()}. Windows has its Subsystem for Linux")
    level, own = Level(level), job_dir is None
    folder = os.path.realpath(job_dir or f"{tempfile.gettempdir()}/box-{secrets.token_hex(8)}")
    seen = mounts.tidy([*mounts.interpreter(), mounts.INSIDE, *readonly, *([] if own else [folder])])
    walls, inner = _walls(level, seen, folder, limits), _inside(level, seen, folder, limits)
    watch = _watch(level, limits, folder, own)
    _make(folder, own, inner.get("uid"))
    try:
        process, lifeline, report = _start(watch, walls, inner, argv, pass_fds, environment(folder, env))
    except BaseException:
        shutil.rmtree(watch["clear"], ignore_errors=True)
        raise
    box = Box(process, lifeline, report, level, limits, folder, watch["clear"])
    box.wait_until_started()
    return box


def _make(folder: str, own: bool, uid: int | None):
    """Make the box's folder on this machine. Another user may pass through it, and only the box's user writes to
    scratch."""
    if own:
        os.mkdir(folder, 0o700)
    if os.path.exists(f"{folder}/scratch"):
        raise BoxError(f"job_dir must not hold a scratch folder yet, got {folder}. Give each box its own")
    os.mkdir(f"{folder}/scratch", 0o700)
    if uid is not None:
        os.chmod(folder, 0o755)
        os.chown(f"{folder}/scratch", uid, uid)


def _start(watch, walls, inner, argv, pass_fds, env):
    """Return the chain of programs in which each starts the next: keeper, walls, inside, and last the stranger's."""
    life_read, life_write = os.pipe()
    report_read, report_write = os.pipe()
    watch = watch | {"report_fd": report_write, "lifeline_fd": life_read, "pass_fds": list(pass_fds)}
    inner = inner | {"report_fd": report_write}
    python = [sys.executable, "-I", "-S", "-B"]
    program = [*walls, *python, str(mounts.INSIDE), json.dumps(inner), *map(str, argv)]
    try:
        process = subprocess.Popen(
            [*python, str(KEEPER), json.dumps(watch), *program],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            pass_fds=(life_read, report_write, *pass_fds),
            start_new_session=True,
            cwd="/",
            env=env,
        )
    finally:
        os.close(life_read)
        os.close(report_write)
    return process, open(life_write, "wb", buffering=0), open(report_read, "rb", buffering=0)


def _walls(level: Level, seen: list[str], folder: str, limits: Limits) -> list[str]:
    """The program that makes the walls and then runs the rest of its command line within them, if there is one."""
    if level < Level.BUBBLEWRAP:
        return []
    if bubblewrap.trouble():
        raise BoxError(bubblewrap.trouble())
    return bubblewrap.command(seen, folder, limits.file_bytes)


def environment(folder: str, extra: dict | None) -> dict:
    """Return the program's environment, with the entries of `extra` and without the caller's environment."""
    scratch = f"{folder}/scratch"
    clean = {"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8", "USER": "student", "LOGNAME": "student"}
    clean |= {"HOME": scratch, "TMPDIR": scratch, "TRITON_CACHE_DIR": f"{scratch}/triton"}
    clean |= {f"{library}_NUM_THREADS": "1" for library in ("OMP", "OPENBLAS", "MKL")}
    return clean | {"BOX_INSIDE": str(mounts.INSIDE)} | dict(extra or {})


def _watch(level: Level, limits: Limits, folder: str, own: bool) -> dict:
    """Return what the keeper must watch."""
    scratch = f"{folder}/scratch"
    return {
        "wall_s": limits.wall_s,
        "memory_bytes": limits.memory_bytes,
        "processes": limits.processes + 4,  # the box's own, and one more than the kernel would refuse itself
        "scratch": None if level == Level.BUBBLEWRAP else scratch,
        "scratch_bytes": limits.file_bytes,
        "clear": folder if own else scratch,
    }


def _inside(level: Level, seen: list[str], folder: str, limits: Limits) -> dict:
    """Return what inside.py must do to itself."""
    scratch, root = f"{folder}/scratch", os.geteuid() == 0
    spec = {
        "cwd": scratch,
        "seccomp": level >= Level.LANDLOCK,
        "die_with_parent": level < Level.BUBBLEWRAP,
        "limits": {
            "cpu_s": limits.cpu_s,
            "memory_bytes": limits.memory_bytes,
            "processes": limits.processes + _counted_already(level, root),
            "file_bytes": limits.file_bytes,
            "open_files": OPEN_FILES,
        },
    }
    if root and level >= Level.LANDLOCK:
        spec["uid"] = _spare_user()
    if level == Level.LANDLOCK:
        system = [*mounts.SYSTEM, *mounts.DETAILS, "/proc", *DEVICES]
        shut = mounts.hidden(seen)
        inner = [path for path in seen if any(mounts.within(path, one) for one in shut)]
        open_to_it = [part for path in seen if path not in inner for part in mounts.without(path, shut)]
        spec["landlock"] = {"readonly": [*system, *open_to_it, *inner], "writable": [scratch, "/dev/null"]}
        spec["keep_reading"] = root and not all(map(mounts.anyone_can_read, [*seen, os.path.dirname(folder)]))
    return spec


def _counted_already(level: Level, root: bool) -> int:
    """Count the user's threads, which RLIMIT_NPROC limits. Since Linux 5.14 a user namespace starts from zero."""
    if root:
        return 0
    release = tuple(int(part) for part in platform.release().split("-")[0].split(".")[:2])
    if level == Level.BUBBLEWRAP and release >= (5, 14):
        return 2  # bubblewrap's own
    return 2 + sum(threads for uid, threads in _tasks() if uid == os.getuid())


def _spare_user() -> int:
    """Return a user without processes, so that the limit on processes is this box's own and no other process can
    signal the box."""
    taken = {uid for uid, _ in _tasks()}
    return random.choice([uid for uid in SPARE_USERS if uid not in taken])


def _tasks():
    """(user, threads) of every process."""
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open(f"/proc/{name}/status", encoding="utf-8") as file:
                    fields = dict(line.split(":", 1) for line in file)
                yield int(fields["Uid"].split()[0]), int(fields["Threads"])
            except (OSError, KeyError):
                continue
