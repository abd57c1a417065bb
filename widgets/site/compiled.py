"""Compile the Python that pages load when the site is built. In the page that took half of the time to the first answer.

Bytecode belongs to one version of Python, so Pyodide makes it, in Node.js, which npm needs as well.
"""

import hashlib
import json
import os
import shutil
import subprocess
import tempfile
import zipfile
from importlib.resources import as_file, files
from pathlib import Path

from widgets.site import npm
from widgets.site.models import archive, members

SECONDS = 300
STANDARD = "pyodide/python_stdlib.zip"
PROGRAMS = ("compile.mjs", "compile_inside.py")


class NotCompiled(Exception):
    """Say why pages compile their Python themselves, in one sentence."""


def compiled(
    site: Path, archives: dict[str, bytes], home: str, start: str, name: str, cache: Path = npm.CACHE
) -> dict[str, bytes]:
    """Return the bytecode of the modules that `start` loads from archives unpacked to `home`, by their paths in `home`.

    Python's own modules get theirs in the site's `STANDARD`. `name` is the result's in the cache.
    """
    standard = (site / STANDARD).read_bytes()
    inputs = [*archives.values(), home.encode(), start.encode(), standard, *map(_text, PROGRAMS)]
    key = hashlib.sha256(b"".join(hashlib.sha256(one).digest() for one in inputs)).hexdigest()
    kept = cache / f"bytecode-{name}.zip"
    held = _held(kept, key) or _made(site, archives, home, start, key, kept)
    (site / STANDARD).write_bytes(_with_bytecode(standard, held))
    ours = {place: code for place, code in held.items() if place.startswith("home/")}
    return {_cached(place.removeprefix("home/"), held["tag"]): code for place, code in ours.items()}


def _text(name: str) -> bytes:
    return files("widgets.site").joinpath(name).read_bytes()


def _held(kept: Path, key: str) -> dict[str, bytes] | None:
    """Return the cache's bytecode, if it is that of the same inputs."""
    try:
        found = members(kept.read_bytes())
    except (OSError, zipfile.BadZipFile):
        return None
    return found if found.get("key") == key.encode() else None


def _made(
    site: Path, archives: dict[str, bytes], home: str, start: str, key: str, kept: Path
) -> dict[str, bytes]:
    node = shutil.which("node")
    if not node:
        raise NotCompiled("Node.js must be installed to compile Python for pages, got none; install it")
    with tempfile.TemporaryDirectory(prefix="compiled_") as folder, as_file(files("widgets.site")) as own:
        room = Path(folder)
        for name, content in archives.items():
            (room / name).write_bytes(content)
        asked = {"archives": list(archives), "home": home, "start": start}
        (room / "asked.json").write_text(json.dumps(asked), encoding="utf-8")
        command = [node, own / "compile.mjs", site / "pyodide", room]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, encoding="utf-8")
        except subprocess.TimeoutExpired:
            raise NotCompiled(
                f"Node.js must compile Python for pages in {SECONDS} s, got no end; try again"
            ) from None
        if done.returncode:
            said = next((line for line in reversed(done.stderr.splitlines()) if "Error" in line), "no reason")
            raise NotCompiled(
                f"Node.js must compile Python for pages, got {said[:200]!r}; see node --version"
            )
        found = members((room / "bytecode.zip").read_bytes())
        found |= {"tag": (room / "tag").read_bytes(), "key": key.encode()}
    begun = kept.with_name(f"{kept.name}.{os.getpid()}")
    begun.parent.mkdir(parents=True, exist_ok=True)
    begun.write_bytes(archive(found))
    begun.replace(kept)  # whole, even while another build runs
    return found


def _with_bytecode(standard: bytes, held: dict[str, bytes]) -> bytes:
    """Return Python's own modules, each as bytecode or as text, because zipimport reads either by the module's name."""
    found = members(standard)
    for name in [name for name in found if f"standard/{name}" in held]:
        del found[name]
        found[f"{name}c"] = held[f"standard/{name}"]
    return archive(found)


def _cached(name: str, tag: bytes) -> str:
    folder, _, module = name.rpartition("/")
    return f"{folder}{'/' * bool(folder)}__pycache__/{module.removesuffix('.py')}.{tag.decode()}.pyc"
