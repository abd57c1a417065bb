"""Unpack a lone zip archive in a submission: only the lab's notebooks, under their own names."""

import io
import os
import stat
import zipfile
from pathlib import Path

from grader.classroom import leftovers
from grader.classroom.downloads import names
from grader.classroom.open_safely import MOST_BYTES, Unfit, read_regular

MOST_ARCHIVE = 5 * MOST_BYTES
MOST_MEMBERS = 1000
MOST_NAMED = 3  # of the files that a row names
ENTRY = b"PK\x01\x02"  # the mark of each member in an archive's list
PLAIN = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)


def archives(folder: Path) -> list[str]:
    return sorted(name for name in os.listdir(folder) if name.lower().endswith(".zip") and name.isprintable())


def lone(folder: Path, wanted: list[str]) -> list[str]:
    """Take the missing notebooks out of the one archive in .../STUDENT/LAB. Return the same remarks each time."""
    if folder.is_symlink() or folder.parent.is_symlink() or not folder.is_dir():
        return []
    found = archives(folder)
    if len(found) != 1:
        return [
            f"{name} is not read, for there are {len(found)} archives: unpack the right one here."
            for name in found
        ]
    try:
        data = read_regular(folder / found[0], MOST_ARCHIVE)
        members = held(data, wanted)
    except Unfit as why:
        return [f"{found[0]} {why}. Unpack it here by hand."]
    taken = [name for name, data in members.items() if put(folder, name, data)]
    if taken:
        return [f"{found[0]} was unpacked: {', '.join(taken)}."]
    here = [name for name in wanted if os.path.lexists(folder / name)]
    if members:
        verb = "is" if len(here) == 1 else "are"
        return [f"{found[0]} is not read: {' and '.join(here)} {verb} already there."]
    nothing = f"{found[0]} holds none of this lab's notebooks ({', '.join(wanted)})"
    if other := maybe_meant(data):
        return [
            f"{nothing}, but {', '.join(other)}: unpack it by hand, name the notebooks so and run this again."
        ]
    return [f"{nothing}, so the archive is not read."]


def maybe_meant(data: bytes) -> list[str]:
    """Return the first few notebooks and archives in an archive, which may hold the work under other names."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        inside = [name for name in archive.namelist() if "__MACOSX" not in name.split("/")]
    kinds = (leftovers.NOTEBOOK, ".zip", *leftovers.ARCHIVES)
    return [leftovers.shown(name) for name in inside if name.lower().endswith(kinds)][:MOST_NAMED]


def again_named(folder: Path, wanted: list[str]) -> list[str]:
    """Copy a browser's second download, `concepts (1).ipynb`, to the name that the lab has. The highest number
    counts."""
    if folder.is_symlink() or folder.parent.is_symlink() or not folder.is_dir():
        return []
    found: dict[str, list[str]] = {}
    for name in sorted(os.listdir(folder), key=lambda one: (len(one), one)):
        if name.isprintable() and name not in wanted and (meant := names.meant(name, wanted)) in wanted:
            found.setdefault(meant, []).append(name)
    said = []
    for meant, own in found.items():
        try:
            taken = put(folder, meant, read_regular(folder / own[-1]))
        except Unfit:
            continue
        said += [f"{own[-1]} was taken for {meant}."] * taken
    return said


def held(data: bytes, wanted: list[str]) -> dict[str, bytes]:
    """Return the wanted notebooks in an archive, from any of its folders. Raise Unfit if it must not be unpacked."""
    if data.count(ENTRY) > MOST_MEMBERS:
        raise Unfit(f"holds more than {MOST_MEMBERS} files")
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            named = [(os.path.basename(one.filename), one) for one in archive.infolist() if not one.is_dir()]
            chosen = [(name, one) for name, one in named if name in wanted]
            for name, one in chosen:
                if reason := unfit(one) or "more than once" * ([n for n, _ in chosen].count(name) > 1):
                    raise Unfit(f"holds {name} {reason}")
            return {name: read(archive, name, one) for name, one in chosen}
    except Unfit:
        raise
    except Exception as error:  # an archive of a stranger may break its reader in any way
        raise Unfit(f"is not a readable zip archive ({type(error).__name__})") from None


def unfit(one: zipfile.ZipInfo) -> str:
    if ".." in one.filename.split("/") or one.filename.startswith("/"):
        return "under a path that leads out of the archive"
    if stat.S_ISLNK(one.external_attr >> 16):
        return "as a link"
    if one.flag_bits & 1:
        return "locked with a password"
    return "" if one.compress_type in PLAIN else "packed in an unusual way"


def read(archive: zipfile.ZipFile, name: str, one: zipfile.ZipInfo) -> bytes:
    """Read no more bytes than a notebook may have, whatever size the archive states."""
    with archive.open(one) as file:
        data = file.read(MOST_BYTES + 1)
    if len(data) > MOST_BYTES:
        raise Unfit(f"holds {name} of more than {MOST_BYTES / 1e6:g} MB")
    return data


def put(folder: Path, name: str, data: bytes) -> bool:
    """Return whether the notebook exists now. Existing files are never overwritten. Stays True while the file is
    the archive's own."""
    path = folder / name
    try:
        file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o644)
    except FileExistsError:
        return (
            not path.is_symlink()
            and path.is_file()
            and path.stat().st_size == len(data)
            and path.read_bytes() == data
        )
    with os.fdopen(file, "wb") as new:
        new.write(data)
    return True
