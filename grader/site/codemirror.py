"""The editor of a lab's cells, CodeMirror 6 (MIT licence), as modules that a page imports without a bundler."""

import json
import re
import tarfile
from importlib.resources import files
from pathlib import Path

from widgets.site import npm

FOLDER = "assets/codemirror"
IMPORT = re.compile(r"(\bfrom\s+|^import\s+)(['\"])([@\w][^'\"]*)\2", re.M)


def packages() -> tuple[npm.Package, ...]:
    rows = json.loads(files("grader.site").joinpath("packages.json").read_text(encoding="utf-8"))
    return tuple(npm.Package(**{**row, "files": tuple(row["files"])}) for row in rows)


def module(name: str) -> str:
    """@codemirror/lang-python -> codemirror-lang-python.js"""
    return name.removeprefix("@").replace("/", "-") + ".js"


def made(cache: Path = npm.CACHE) -> dict[str, bytes]:
    """Return the editor's files by their path in the site. npm.NotFetched says which package is missing."""
    found, licences, known = {}, [], {one.name for one in packages()}
    npm.fetch(packages(), cache)
    for one in packages():
        with tarfile.open(one.kept(cache)) as archive:
            text = archive.extractfile(f"package/{one.files[0]}").read().decode()
            licences.append(
                f"{one.name} {one.version}\n\n{archive.extractfile('package/LICENSE').read().decode()}"
            )
        found[f"{FOLDER}/{module(one.name)}"] = own_imports(text, known).encode()
    return found | {f"{FOLDER}/LICENSE": "\n\n".join(licences).encode()}


def own_imports(text: str, known: set[str]) -> str:
    """Lead imports by a package's name to the file next to this one."""
    return IMPORT.sub(lambda m: f"{m[1]}'./{module(m[3])}'" if m[3] in known else m[0], text)
