"""Fetch one member of a wheel from a package index, without the rest of the wheel, or the same file from elsewhere."""

import hashlib
import io
import json
import os
import ssl
import subprocess
import sys
import tempfile
import urllib.request
import zipfile
from pathlib import Path

SECONDS = 120
BLOCK = 1 << 20


class NotFetched(Exception):
    """Say why a file is not there, in one sentence."""


class Ranged(io.RawIOBase):
    """Read a file at an address, fetching only the blocks that are read."""

    def __init__(self, address: str):
        self.address, self.at, self.blocks = address, 0, {}
        self.context = ssl.create_default_context()
        with self._open("bytes=0-0") as answer:
            if answer.status != 206:
                raise NotFetched(f"{address} must give parts of a file, got the whole file. Use --numpy")
            self.size = int(answer.headers["Content-Range"].rpartition("/")[2])

    def _open(self, range: str):
        request = urllib.request.Request(self.address, headers={"Range": range, "User-Agent": "pip"})
        return urllib.request.urlopen(request, timeout=SECONDS, context=self.context)

    def seekable(self) -> bool:
        return True

    def readable(self) -> bool:
        return True

    def tell(self) -> int:
        return self.at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        self.at = offset + {io.SEEK_SET: 0, io.SEEK_CUR: self.at, io.SEEK_END: self.size}[whence]
        return self.at

    def readinto(self, buffer) -> int:
        """Fill a buffer up to the end of a block at most."""
        number, start = divmod(self.at, BLOCK)
        if self.at >= self.size:
            return 0
        data = self._block(number)[start : start + len(buffer)]
        buffer[: len(data)] = data
        self.at += len(data)
        return len(data)

    def _block(self, number: int) -> bytes:
        if number not in self.blocks:
            last = min((number + 1) * BLOCK, self.size) - 1
            with self._open(f"bytes={number * BLOCK}-{last}") as answer:
                self.blocks[number] = answer.read()
        return self.blocks[number]


def address_of(wheel: str) -> str:
    """Ask pip where its index keeps a wheel, named as in requirements: open-webui==0.12.4."""
    with tempfile.NamedTemporaryFile("r", suffix=".json") as report:
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--dry-run", "--no-deps"]
        command += ["--ignore-requires-python", "--report", report.name, wheel]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS)
        except subprocess.TimeoutExpired:
            raise NotFetched(f"pip must find {wheel} in {SECONDS} s, got no answer. Try again") from None
        if done.returncode:
            said = (done.stderr.strip().splitlines() or ["nothing"])[-1]
            raise NotFetched(f"pip must find {wheel}, got {said!r}. See pip config list")
        (found,) = json.load(report)["install"]
        return found["download_info"]["url"]


def member(wheel: str, name: str, sha256: str, cache: Path) -> Path:
    """Return a member of a wheel, from the cache or else from the index. Raise NotFetched if its bytes differ."""
    kept = cache / name.rpartition("/")[2]
    if not (kept.exists() and is_sound(kept.read_bytes(), sha256)):
        try:
            with zipfile.ZipFile(io.BufferedReader(Ranged(address_of(wheel)), BLOCK)) as file:
                content = file.read(name)
        except (OSError, KeyError, zipfile.BadZipFile) as error:
            raise NotFetched(f"{wheel} must give {name}, got {type(error).__name__}: {error}") from None
        keep(kept, content, sha256, "that index")
    return kept


def given(place: str, name: str, sha256: str, cache: Path) -> Path:
    """Put a file of a folder, or of an http address, into the cache. Raise NotFetched if its bytes differ."""
    try:
        if place.startswith(("http://", "https://")):
            request = urllib.request.Request(f"{place.rstrip('/')}/{name}", headers={"User-Agent": "pip"})
            with urllib.request.urlopen(request, timeout=SECONDS) as answer:
                content = answer.read()
        else:
            content = Path(place, name).read_bytes()
    except OSError as error:
        raise NotFetched(f"{place} must hold {name}, got {type(error).__name__}: {error}") from None
    return keep(cache / name, content, sha256, place)


def keep(kept: Path, content: bytes, sha256: str, source: str) -> Path:
    if not is_sound(content, sha256):
        raise NotFetched(f"{kept.name} must have the sha256 that is pinned, got another. Do not use {source}")
    kept.parent.mkdir(parents=True, exist_ok=True)
    whole = kept.with_name(f".{kept.name}.{os.getpid()}")
    whole.write_bytes(content)
    whole.replace(kept)  # in one step, because others may be reading the file
    return kept


def is_sound(content: bytes, sha256: str) -> bool:
    return hashlib.sha256(content).hexdigest() == sha256
