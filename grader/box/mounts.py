"""List the files that a boxed program has to see: the system's programs, the interpreter and its environment."""

import os
import stat
import sys
from pathlib import Path

SYSTEM = ["/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"]
DETAILS = [
    "/etc/ld.so.cache",
    "/etc/ld.so.conf",
    "/etc/ld.so.conf.d",
    "/etc/alternatives",
    "/etc/localtime",
    "/sys/devices/system/cpu",
]
INSIDE = Path(__file__).with_name("inside.py")
OURS = (
    "kernels",
    "widgets",
    "grader",
    "tilescope",
    "solutions",
)  # what no box shows, wherever it is installed


def interpreter(executable: str = sys.executable) -> list[str]:
    """The folders and links that this Python is made of, at their own paths.

    A virtual environment's python is a chain of links to an interpreter that pyenv or uv keeps under the home folder.
    Each link on the way has to exist inside, and nothing else of the home folder.
    """
    places = [sys.prefix, sys.base_prefix, os.path.realpath(sys.prefix), os.path.realpath(sys.base_prefix)]
    link = os.path.abspath(executable)
    for _ in range(16):
        if not any(within(link, place) for place in places + SYSTEM):
            places.append(link)
        if not os.path.islink(link):
            break
        link = os.path.normpath(os.path.join(os.path.dirname(link), os.readlink(link)))
    return tidy(place for place in places if not any(within(place, s) for s in SYSTEM))


def hidden(seen: list[str]) -> list[str]:
    """Return our folders inside those that a box sees, where packages are installed next to the others and not in a
    checkout."""
    found = []
    for path in seen:
        for site in Path(path).glob("lib*/python3*/site-packages"):
            found += [str(site / name) for name in OURS if (site / name).is_dir()]
    return sorted(set(found))


def without(path: str, shut: list[str]) -> list[str]:
    """Return the visible parts of a folder that also contains hidden ones."""
    if path in shut:
        return []
    if not any(within(one, path) for one in shut):
        return [path]
    return [
        part for entry in sorted(os.scandir(path), key=lambda e: e.name) for part in without(entry.path, shut)
    ]


def tidy(paths) -> list[str]:
    """Absolute, each once, and parents before children, so that a later bind never hides an earlier one."""
    wanted = sorted({os.path.abspath(path) for path in paths}, key=lambda path: (path.count("/"), path))
    for path in wanted:
        if not os.path.exists(path):
            raise ValueError(f"readonly must be paths that exist, got {path}. Check the path")
        if path in ("/", *homes()):
            raise ValueError(f"readonly must be folders made to be seen, got {path}. Name folders inside it")
    return wanted


def homes() -> list[str]:
    """Return the home folder, and its real location, or none for a user without a home."""
    try:
        home = str(Path.home())
    except RuntimeError:
        return []
    return list(dict.fromkeys([home, os.path.realpath(home)]))


def within(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def anyone_can_read(path: str) -> bool:
    """Return whether a user that owns nothing reaches this path by its permissions."""
    path = Path(os.path.realpath(path))
    try:
        return bool(path.stat().st_mode & stat.S_IROTH) and all(
            parent.stat().st_mode & stat.S_IXOTH for parent in path.parents
        )
    except OSError:
        return False
