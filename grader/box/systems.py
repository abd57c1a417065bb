"""Identify the system. Only this module and programs that import nothing of the grader (inside a box, a rank, the
set-up) ask, so it gathers everything that differs between Linux, macOS, Windows and a browser's tab. `GRADER_BOX=none`
makes Linux behave like macOS and Windows, and `GRADER_BOX=here` like a tab."""

import os
import subprocess
import sys
from pathlib import Path

WISH = "GRADER_BOX"
WISHES = ("", "none", "here")
TAB = "emscripten"
SIGKILL, SIGXCPU = 9, 24  # Windows knows neither
CACHES = {"darwin": "Library/Caches", "win32": "AppData/Local"}  # below the home folder


def wish() -> str:
    found = os.environ.get(WISH, "")
    if found not in WISHES:
        raise ValueError(f"{WISH} must be none, here or nothing, got {found!r}")
    return found


def has_boxes() -> bool:
    """Return whether programs can be contained here, and forked. The parts of a box exist only on Linux."""
    return sys.platform == "linux" and not wish()


def has_processes() -> bool:
    """Return whether another program can be started, which a browser's tab can't do."""
    return sys.platform != TAB and wish() != "here"


def has_tritons_wheel() -> bool:
    """Return whether Triton publishes its wheels for this system."""
    return sys.platform == "linux" and not wish()


def name() -> str:
    """Return this system's common name."""
    known = {"linux": "Linux", "darwin": "macOS", "win32": "Windows", TAB: "a browser's tab"}
    return known.get(sys.platform, sys.platform)


def apart() -> dict:
    """Return arguments of Popen that keep Ctrl-C in a terminal from the started program."""
    if os.name == "nt":
        return {"creationflags": subprocess.CREATE_NEW_PROCESS_GROUP | subprocess.CREATE_NO_WINDOW}
    return {"start_new_session": True}


def cache_folder() -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or (os.environ.get("LOCALAPPDATA") if os.name == "nt" else None)
    return Path(base or Path.home() / ".cache") / "tile-by-tile"


def downloads() -> Path:
    """Return the folder where this system's programs keep downloads."""
    return Path.home() / CACHES.get(sys.platform, ".cache")


def speak_utf8() -> None:
    """Windows writes to a pipe or a file in a code page that lacks arrows and the letter µ."""
    for stream in (sys.stdin, sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure") and (stream.encoding or "").lower().replace("-", "") != "utf8":
            stream.reconfigure(encoding="utf-8", errors="replace")
