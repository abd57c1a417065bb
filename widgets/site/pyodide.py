"""Python for a browser: the core of Pyodide, as pyodide.json pins it, through npm's own client."""

import base64
import hashlib
import json
import shutil
import subprocess
import tarfile
from importlib.resources import files
from pathlib import Path

PIN = json.loads(files("widgets.site").joinpath("pyodide.json").read_text(encoding="utf-8"))
CACHE = Path(__file__).parents[2] / ".cache"
FETCH_SECONDS = 300


class NotFetched(Exception):
    """Why there is no Python for the pages, in one sentence."""


def sound(package: Path) -> bool:
    """Is this file, to the byte, the package that the project pins?"""
    digest = hashlib.sha512(package.read_bytes()).digest()
    return base64.b64encode(digest).decode() == PIN["sha512"]


def package(cache: Path = CACHE) -> Path:
    """The package, from the cache or else from npm; npm's own configuration says from which registry."""
    kept = cache / f"{PIN['package']}-{PIN['version']}.tgz"
    if kept.exists() and sound(kept):
        return kept
    name, npm = f"{PIN['package']}@{PIN['version']}", shutil.which("npm")
    if not npm:
        raise NotFetched(f"npm must be installed to fetch {name}, got none; install Node.js, which brings it")
    cache.mkdir(parents=True, exist_ok=True)
    command = [npm, "pack", name, "--silent", "--pack-destination", str(cache)]
    try:
        done = subprocess.run(command, cwd=cache, capture_output=True, text=True, timeout=FETCH_SECONDS)
    except subprocess.TimeoutExpired:
        raise NotFetched(f"npm must fetch {name} in {FETCH_SECONDS} s, got no answer; try again") from None
    if done.returncode or not kept.exists():
        said = next(iter(done.stderr.strip().splitlines()[-1:]), f"exit {done.returncode}")
        raise NotFetched(f"npm must fetch {name}, got {said!r}; see npm config get registry")
    if not sound(kept):
        kept.unlink()
        raise NotFetched(
            f"{name} must have the sha512 of pyodide.json, got another; do not use that registry"
        )
    return kept


def unpack(out: Path, cache: Path = CACHE) -> int:
    """Put the files that a page needs into a folder; their size in bytes."""
    source = package(cache)
    out.mkdir(parents=True, exist_ok=True)
    with tarfile.open(source) as archive:
        for name in PIN["files"]:
            with archive.extractfile(f"package/{name}") as member:
                (out / name).write_bytes(member.read())
    return sum((out / name).stat().st_size for name in PIN["files"])
