"""The labs' files of the site: pages, the judge for their Python, and numpy for Pyodide as its own lock names it."""

import json
import posixpath
import re
import tarfile
from importlib.resources import files
from pathlib import Path

from grader.places import ROOT
from grader.site import page, ranged
from grader.site.bundle import bundle
from widgets.site import npm
from widgets.site.contents import anchor, contents
from widgets.site.topics import topics

LABS = ("00_roofline/first_kernels",)  # the labs that have a page so far
CARRIER = "open-webui==0.12.4"  # a wheel that holds Pyodide's numpy, byte for byte
WITHIN = "open_webui/frontend/pyodide"
LISTED = "labs.html"
OWN = ("lab.js", "lab-worker.js", "lab.css")


def numpy(cache: Path = npm.CACHE) -> tuple[str, Path]:
    """Return the name and the file of numpy that Pyodide's lock names; npm.NotFetched or ranged.NotFetched say why not."""
    (core,) = (one for one in npm.packages() if one.name == "pyodide")
    with tarfile.open(core.kept(cache)) as archive:
        lock = json.load(archive.extractfile("package/pyodide-lock.json"))
    row = lock["packages"]["numpy"]
    return row["file_name"], ranged.member(CARRIER, f"{WITHIN}/{row['file_name']}", row["sha256"], cache)


def make(root: Path = ROOT) -> dict[str, bytes]:
    """Return every file of the labs by its place in the site, Pyodide itself apart."""
    found, slugs = topics(root), sorted({lab.split("/")[0].split("_", 1)[1] for lab in LABS})
    name, wheel = numpy()
    own = files("grader.site")
    made = {f"assets/{one}": own.joinpath(one).read_bytes() for one in OWN}
    made |= {"assets/judge.zip": bundle(slugs, root), f"pyodide/{name}": wheel.read_bytes()}
    for lab in LABS:
        address, notebook = f"labs/{lab}.html", root / "labs" / f"{lab}.ipynb"
        pictures: dict[str, Path] = {}
        listed = contents(found, "../" * address.count("/"), address)
        made[address] = page.page(notebook, lead(lab, root, pictures), listed, address).encode()
        made[f"labs/{lab}.ipynb"] = notebook.read_bytes()
        made |= {place: path.read_bytes() for place, path in pictures.items()}
    return made


def lead(lab: str, root: Path, pictures: dict[str, Path]):
    """Return what turns a lab's links to the site's addresses, and notes the pictures that they show."""

    def address(href: str) -> str | None:
        path, _, part = href.partition("#")
        place = posixpath.normpath(posixpath.join("labs", posixpath.dirname(lab), path))
        if place.endswith((".svg", ".png")) and (root / place).is_file():
            there = f"labs/{posixpath.dirname(lab)}/{posixpath.basename(place)}"
            pictures[there] = root / place
            return posixpath.basename(place)
        if lesson := re.fullmatch(r"course/([\w/]+)\.(?:ipynb|md)", place):
            return f"../../lessons/{lesson[1]}.html" + (f"#{part}" if part else "")
        return None

    return address


def linked(listed: str) -> str:
    """Return the site's list of labs with a link to each that has a page."""
    for lab in LABS:
        row = f'<li id="{anchor(lab)}">'
        at = listed.index("<br>", listed.index(row)) + len("<br>")
        listed = f'{listed[:at]}<a href="labs/{lab}.html">Open in this browser</a> · {listed[at:]}'
    return listed


def put(out: Path, made: dict[str, bytes]) -> int:
    """Write the labs into a folder that holds the site; their size in bytes."""
    if (out / LISTED).exists():
        made = made | {LISTED: linked((out / LISTED).read_text(encoding="utf-8")).encode()}
    for name, content in made.items():
        (out / name).parent.mkdir(parents=True, exist_ok=True)
        (out / name).write_bytes(content)
    return sum(map(len, made.values()))
