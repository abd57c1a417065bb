"""Load a page's modules inside Pyodide and keep their bytecode. compiled.py runs this and puts the input in /room."""

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
    sys.dont_write_bytecode = False
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
    """Write the bytecode of these modules. Python then never compares it with their source text."""
    import importlib.util
    import marshal
    import zipfile

    with zipfile.ZipFile(ROOM / "bytecode.zip", "w") as made, zipfile.ZipFile(STANDARD) as standard:
        for file, name in sorted(files.items()):
            written = Path(importlib.util.cache_from_source(file))  # by Python, when it loaded the module
            source = standard.read(name) if file.startswith(STANDARD) else Path(file).read_bytes()
            code = (
                written.read_bytes()[16:]
                if written.exists()
                else marshal.dumps(compile(source, file, "exec"))
            )
            head = (
                importlib.util.MAGIC_NUMBER + (1).to_bytes(4, "little") + importlib.util.source_hash(source)
            )
            made.writestr(f"{'standard' if file.startswith(STANDARD) else 'home'}/{name}", head + code)
    (ROOM / "tag").write_text(sys.implementation.cache_tag, encoding="utf-8")


if __name__ == "__main__":  # which Pyodide calls what it runs
    kept(loaded(json.loads((ROOM / "asked.json").read_text(encoding="utf-8"))))
