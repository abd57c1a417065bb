"""Fetch Python and the fonts from npm, as packages.json pins them, through npm's own client."""

import base64
import hashlib
import json
import shutil
import subprocess
import tarfile
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

CACHE = Path(__file__).parents[2] / ".cache"
FETCH_SECONDS = 300


class NotFetched(Exception):
    """Say why a package is not there, in one sentence."""


@dataclass(frozen=True)
class Package:
    name: str
    version: str
    sha512: str
    folder: str  # where its files are in the site
    files: tuple[str, ...]  # only these are taken

    @property
    def archive(self) -> str:
        """Return the name of the archive that npm pack makes."""
        return f"{self.name.removeprefix('@').replace('/', '-')}-{self.version}.tgz"

    @property
    def places(self) -> dict[str, str]:
        """Return file in the package -> its path in the site."""
        return {name: f"{self.folder}/{Path(name).name}" for name in self.files}

    def sound(self, path: Path) -> bool:
        """Return whether this file is, to the byte, the package that the project pins."""
        return base64.b64encode(hashlib.sha512(path.read_bytes()).digest()).decode() == self.sha512

    def here(self, cache: Path) -> bool:
        kept = cache / self.archive
        return kept.exists() and self.sound(kept)

    def kept(self, cache: Path = CACHE) -> Path:
        """Return a package from the cache or from npm, whose own configuration chooses the registry."""
        fetch([self], cache)
        return cache / self.archive

    def unpack(self, site: Path, cache: Path = CACHE) -> int:
        """Put a package's files into a site and return their size in bytes."""
        with tarfile.open(self.kept(cache)) as archive:
            for name, place in self.places.items():
                (site / place).parent.mkdir(parents=True, exist_ok=True)
                with archive.extractfile(f"package/{name}") as member:
                    (site / place).write_bytes(member.read())
        return sum((site / place).stat().st_size for place in self.places.values())


def packages() -> tuple[Package, ...]:
    rows = json.loads(files("widgets.site").joinpath("packages.json").read_text(encoding="utf-8"))
    return tuple(Package(**{**row, "files": tuple(row["files"])}) for row in rows)


def fetch(wanted: Iterable[Package], cache: Path = CACHE) -> None:
    """Fetch what the cache lacks, all at once, because npm takes seconds to start. NotFetched says why it can't be had."""
    missing = [one for one in wanted if not one.here(cache)]
    if not missing:
        return
    cache.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=cache) as folder:  # others may be reading what is in the cache
        _pack(missing, Path(folder))
        for one in missing:
            fetched = Path(folder) / one.archive
            if not one.sound(fetched):
                raise NotFetched(
                    f"{one.name} must have the sha512 of packages.json, got another; do not use that registry"
                )
            fetched.replace(cache / one.archive)


def _pack(wanted: list[Package], folder: Path) -> None:
    names, npm = [f"{one.name}@{one.version}" for one in wanted], shutil.which("npm")
    listed = ", ".join(names)
    if not npm:
        raise NotFetched(
            f"npm must be installed to fetch {listed}, got none; install Node.js, which brings it"
        )
    command = [npm, "pack", *names, "--silent", "--pack-destination", str(folder)]
    try:
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=FETCH_SECONDS)
    except subprocess.TimeoutExpired:
        raise NotFetched(f"npm must fetch {listed} in {FETCH_SECONDS} s, got no answer; try again") from None
    if done.returncode or not all((folder / one.archive).exists() for one in wanted):
        said = next(iter(done.stderr.strip().splitlines()[-1:]), f"exit {done.returncode}")
        raise NotFetched(f"npm must fetch {listed}, got {said!r}; see npm config get registry")


def ready(cache: Path = CACHE) -> None:
    """Check that everything is in the cache. NotFetched names the missing packages."""
    fetch(packages(), cache)


def unpack(site: Path, cache: Path = CACHE) -> int:
    ready(cache)
    return sum(package.unpack(site, cache) for package in packages())
