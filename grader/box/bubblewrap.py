"""Write bubblewrap's command line for a box (level 3)."""

import os
import shutil
import subprocess
from functools import cache
from pathlib import Path

from grader.box import mounts

OLDEST = (0, 8)  # the first whose tmpfs takes a size and whose user namespaces can be shut
SHARED_MEMORY = 64 << 20


@cache
def trouble() -> str:
    """Return why bubblewrap cannot be used here, or an empty text if it can be tried."""
    program = shutil.which("bwrap")
    if not program:
        return "bubblewrap is not installed (apt-get install bubblewrap, dnf install bubblewrap)"
    said = subprocess.run([program, "--version"], capture_output=True, text=True).stdout.split()
    version = said[-1] if said else "0"
    if tuple(int(part) for part in version.split(".")[:2] if part.isdigit()) < OLDEST:
        return f"bubblewrap must be 0.8 or later, got {version}. Install a newer bubblewrap"
    return ""


def command(readonly: list[str], job_dir: str, file_bytes: int) -> list[str]:
    """Return everything before the program. As root it runs without a user namespace, so that inside.py can become a
    user of its own. Root mapped to "nobody" would still be root to the limit on processes."""
    root = os.geteuid() == 0
    words = [shutil.which("bwrap"), "--unshare-pid", "--unshare-net", "--unshare-ipc", "--unshare-uts"]
    words += [
        "--unshare-cgroup-try",
        "--hostname",
        "box",
        "--die-with-parent",
        "--new-session",
        "--cap-drop",
        "ALL",
    ]
    if root:
        words += ["--cap-add", "CAP_SETUID", "--cap-add", "CAP_SETGID"]
    else:
        words += ["--unshare-user", "--disable-userns", "--uid", "65534", "--gid", "65534"]
    for path in mounts.SYSTEM:
        if os.path.islink(path):
            words += ["--symlink", os.readlink(path), path]
        elif os.path.exists(path):
            words += ["--ro-bind", path, path]
    for path in mounts.DETAILS:
        words += ["--ro-bind-try", path, path]
    for parent in _parents(
        [*readonly, f"{job_dir}/scratch"]
    ):  # bubblewrap's own would be shut to all but root
        words += ["--perms", "0755", "--dir", parent]
    shut = mounts.hidden(readonly)
    for path in readonly:
        words += ["--ro-bind", path, path] if not any(mounts.within(path, one) for one in shut) else []
    for one in shut:  # an empty folder over each of ours, then the parts that the box may see
        words += ["--perms", "0755", "--tmpfs", one]
        for path in readonly:
            words += ["--ro-bind", path, path] if mounts.within(path, one) else []
        words += ["--remount-ro", one]
    words += ["--proc", "/proc", "--dev", "/dev"]
    for path, size in (("/dev/shm", min(SHARED_MEMORY, file_bytes)), (f"{job_dir}/scratch", file_bytes)):
        words += ["--perms", "1777", "--size", str(size), "--tmpfs", path]
    # The mount points are kept in memory without a limit, so they must not be writable.
    return [*words, "--remount-ro", "/dev", "--remount-ro", "/", "--"]


def _parents(paths: list[str]) -> list[str]:
    """The folders above these paths, top first, that no system folder or other path brings along."""
    brought = [*mounts.SYSTEM, *paths]
    above = {str(parent) for path in paths for parent in Path(path).parents} - {"/"}
    return sorted(parent for parent in above if not any(mounts.within(parent, path) for path in brought))
