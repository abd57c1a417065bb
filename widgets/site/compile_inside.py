"""Load what a page loads and keep the bytecode of it: compiled.py, inside Pyodide. /room has what it asks for."""

import json
import shutil
import sys
from pathlib import Path

ROOM = Path("/room")
STANDARD = next(path for path in sys.path if path.endswith(".zip"))  # Python's own modules


def loaded(asked: dict) -> dict[str, str]:
    """Return the file of each module that is loaded once `start` has run -> its name in its archive."""
    for archive in asked["archives"]:
        shutil.unpack_archive(ROOM / archive, asked["home"], "zip")
    exec(asked["start"], {"__name__": "__main__"})
    found = {getattr(module.__spec__, "origin", None) for module in list(sys.modules.values())}
    roots = (asked["home"], STANDARD)
    return {
        file: file.removeprefix(f"{root}/")
        for file in found
        for root in roots
        if file and file.startswith(f"{root}/") and file.endswith(".py")
    }


def kept(files: dict[str, str]) -> None:
    """Write the bytecode of these modules, which Python then never compares with the text that it came from."""
    import py_compile
    import zipfile

    with zipfile.ZipFile(ROOM / "bytecode.zip", "w") as made, zipfile.ZipFile(STANDARD) as standard:
        for file, name in sorted(files.items()):
            source = standard.read(name) if file.startswith(STANDARD) else Path(file).read_bytes()
            Path("/tmp/source.py").write_bytes(source)
            py_compile.compile(
                "/tmp/source.py",
                "/tmp/bytecode",
                dfile=file,
                doraise=True,
                invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH,
            )
            where = "standard" if file.startswith(STANDARD) else "home"
            made.writestr(f"{where}/{name}", Path("/tmp/bytecode").read_bytes())
    (ROOM / "tag").write_text(sys.implementation.cache_tag)


if __name__ == "__main__":  # which Pyodide calls what it runs
    kept(loaded(json.loads((ROOM / "asked.json").read_text())))
