"""Find programs that no package brings: Chromium for browser tests, bubblewrap for the jail.

`python -m grader programs` gets missing ones from the package manager as root, else (Chromium only) by Playwright's
own download. It names the programs still missing. The tests that need one don't run then.
"""

import os
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

from grader.box import systems

CHROMIUM_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome", "msedge")
APPLICATIONS = (
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
    "/Applications/Chromium.app/Contents/MacOS/Chromium",
    "C:/Program Files/Google/Chrome/Application/chrome.exe",
)


def _downloaded() -> str | None:
    """Return the newest Chromium that Playwright has fetched."""
    home = systems.downloads() / "ms-playwright"
    folder = Path(os.environ.get("PLAYWRIGHT_BROWSERS_PATH") or home)
    found = sorted(folder.glob("chromium-*/chrome-*/chrome*")) + sorted(
        folder.glob("chromium-*/*/*.app/Contents/MacOS/*")
    )
    programs = [
        path
        for path in found
        if path.name in ("chrome", "chrome.exe", "Chromium", "Google Chrome for Testing")
    ]
    return str(programs[-1]) if programs else None


def chromium() -> str | None:
    """Return a Chromium that Playwright can drive: CHROMIUM from the environment, PATH, applications, downloads."""
    names = filter(None, (os.environ.get("CHROMIUM"), *CHROMIUM_NAMES, *APPLICATIONS))
    return next(filter(None, map(shutil.which, names)), None) or _downloaded()


def firefox() -> str | None:
    """Return a Firefox, if there is one, for trying the site in a second browser. The course itself doesn't need
    Firefox."""
    return shutil.which("firefox-esr") or shutil.which("firefox")


@cache
def bubblewrap() -> str | None:
    """bubblewrap, where it is there and this kernel lets it make a box."""
    program = shutil.which("bwrap")
    if not program:
        return None
    try:
        tried = subprocess.run(
            [program, "--ro-bind", "/", "/", "--unshare-all", "true"], capture_output=True, timeout=5
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return program if tried.returncode == 0 else None


def _is_root() -> bool:
    return hasattr(os, "geteuid") and os.geteuid() == 0


def install() -> None:
    """Get what is missing, as far as this user may."""
    wanted = [] if chromium() else ["chromium"]
    wanted += [] if shutil.which("bwrap") or not systems.has_boxes() else ["bubblewrap"]
    if wanted and _is_root() and shutil.which("apt-get"):
        print(f"setup: installing {' and '.join(wanted)}", flush=True)
        subprocess.run(["apt-get", "update", "-q"], check=False)
        environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
        command = ["apt-get", "install", "-y", "-q", "--no-install-recommends", *wanted]
        subprocess.run(command, env=environment, check=False)
    if not chromium():
        print("setup: downloading a Chromium for the browser tests", flush=True)
        subprocess.run([sys.executable, "-m", "playwright", "install", "chromium"], check=False)


def missing() -> dict[str, str]:
    """Return the programs that tests will miss, each with a way to install it."""
    bubblewrap.cache_clear()
    ways = {}
    if not chromium():
        ways["chromium"] = "install Chromium or Chrome, or run: python -m playwright install chromium"
    if systems.has_boxes() and not bubblewrap():
        ways["bubblewrap"] = "apt-get install bubblewrap, on a machine that allows user namespaces"
    return ways


def main(argv: list[str]) -> int:
    install()
    for name, way in missing().items():
        print(f"setup: no {name}, so the tests that need it will not run: {way}")
    return 0
