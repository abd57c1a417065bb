"""Which system this is: the one module that asks, so that all that differs between Linux, macOS, Windows and a browser's tab
is found here. `GRADER_BOX=none` has Linux do as macOS and Windows do, and `GRADER_BOX=here` as a tab does."""

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
    """Whether programs can be held in here, and forked: Linux alone has what a box is made of."""
    return sys.platform == "linux" and not wish()


def has_processes() -> bool:
    """Whether another program can be started at all: not in a browser's tab."""
    return sys.platform != TAB and wish() != "here"


def has_tritons_wheel() -> bool:
    """Whether Triton publishes its wheels for this system."""
    return sys.platform == "linux" and not wish()


def name() -> str:
    """What a person calls this system."""
    known = {"linux": "Linux", "darwin": "macOS", "win32": "Windows", TAB: "a browser's tab"}
    return known.get(sys.platform, sys.platform)


def apart() -> dict:
    """How a program is started so that Ctrl-C in a terminal reaches this process alone, as arguments of Popen."""
    if os.name == "nt":
        return {"creationflags": subprocess.CREATE_NEW_PROCESS_GROUP | subprocess.CREATE_NO_WINDOW}
    return {"start_new_session": True}


def cache_folder() -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or (os.environ.get("LOCALAPPDATA") if os.name == "nt" else None)
    return Path(base or Path.home() / ".cache") / "tile-by-tile"


def downloads() -> Path:
    """Where programs of this system keep what they fetch."""
    return Path.home() / CACHES.get(sys.platform, ".cache")


def speak_utf8() -> None:
    """Windows writes to a pipe or a file in a code page that lacks arrows and the letter µ."""
    for stream in (sys.stdin, sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure") and (stream.encoding or "").lower().replace("-", "") != "utf8":
            stream.reconfigure(encoding="utf-8", errors="replace")
