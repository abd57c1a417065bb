"""Build the labs' files of the site: pages, the judge for their Python, the editor, and the numpy of Pyodide's own
lock."""

import gzip
import json
import posixpath
import re
import tarfile
from importlib.resources import files
from pathlib import Path

from grader.paths import ROOT
from grader.site import bundle, codemirror, ranged
from grader.site.page import LabPage
from widgets.site import compiled, npm
from widgets.site.contents import anchor, contents
from widgets.site.topics import topics

CARRIER = "open-webui==0.12.4"  # a wheel that holds Pyodide's numpy, byte for byte
WITHIN = "open_webui/frontend/pyodide"
LISTED = "labs.html"
OWN = ("lab.js", "lab-editor.js", "lab-store.js", "lab-worker.js", "lab.css")
PACKED = (".html", ".js", ".mjs", ".css", ".json", ".svg", ".ipynb", ".wasm")  # what gzip makes smaller
BYTECODE, FIRST = "assets/bytecode.zip", "00_roofline/first_kernels"
WRONG = """@triton.jit
def copied(x_ptr, y_ptr, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y_ptr + offs, tl.load(x_ptr + offs))


def launch_doubled(p):
    return {"steps": [{"kernel": copied, "grid": (p.N // 64,), "constexprs": {"BLOCK": 64}}]}
"""
CHECKED = f"""
import json, os, sys
sys.path.insert(0, '/judge')
os.environ['TILE_RECORDS'] = '/records'
from grader.site.inside import reply
told = json.loads(reply(json.dumps({{'what': 'check', 'question': 'roofline.doubled', 'source': {WRONG!r}}})))
assert told['verdict'] == 'FAIL', told['text']
reply(json.dumps({{'what': 'cell', 'cell': 'one', 'source': '1', 'above': []}}))
"""
ANSWER = re.compile(r"### (BEGIN|END) SOLUTION\n?")


def labs(root: Path = ROOT) -> list[str]:
    """Return all labs: 00_roofline/concepts, ..."""
    return [f"{path.parent.name}/{path.stem}" for path in sorted((root / "labs").glob("*/*.ipynb"))]


def numpy(cache: Path = npm.CACHE, place: str = "") -> tuple[str, Path]:
    """Return the name and the file of numpy that Pyodide's lock names. The file comes from `place`, a folder or an
    address, or else from the cache or the wheel. npm.NotFetched and ranged.NotFetched give the reason for a failure."""
    (core,) = (one for one in npm.packages() if one.name == "pyodide")
    with tarfile.open(core.kept(cache)) as archive:
        lock = json.load(archive.extractfile("package/pyodide-lock.json"))
    row = lock["packages"]["numpy"]
    name, sha256 = row["file_name"], row["sha256"]
    if place:
        return name, ranged.given(place, name, sha256, cache)
    return name, ranged.member(CARRIER, f"{WITHIN}/{name}", sha256, cache)


def make(
    root: Path = ROOT, instructor: bool = False, say=print, only: tuple[str, ...] = ()
) -> dict[str, bytes]:
    """Return every file of the labs, or of some labs, by its address in the site, without Pyodide itself."""
    found = topics(root)
    name, wheel = numpy()
    own = files("grader.site")
    made = {f"assets/{one}": own.joinpath(one).read_bytes() for one in OWN}
    made |= {"assets/judge.zip": bundle.shared(root), f"pyodide/{name}": wheel.read_bytes()}
    made[BYTECODE] = bundle.zipped({})
    try:
        made |= codemirror.made()
    except npm.NotFetched as problem:
        say(f"site: cells of labs are edited in plain text areas: {problem}")
    for lab in only or labs(root):
        notebook, links = root / "labs" / f"{lab}.ipynb", Links(lab, root)
        address = f"labs/{lab}.html"
        topic = next((one for one in found if any(lab == one_lab.path for one_lab in one.labs)), None)
        listed = contents(found, "../" * address.count("/"), address, topic)
        solutions = solved(lab, root) if instructor else {}
        page = LabPage(notebook, links.address, links.picture, address, solutions).html(listed)
        made[address] = page.encode()
        made[f"labs/{lab}.ipynb"] = notebook.read_bytes()
        made[f"labs/{lab}.zip"] = bundle.of_lab(lab, root, instructor)
        made |= {place: path.read_bytes() for place, path in links.copied.items()}
    return made


def solved(lab: str, root: Path) -> dict[str, str]:
    """Return the answers of a lab by their cells."""
    notebook = root / "solutions" / f"{lab}.ipynb"
    cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
    return {
        cell["id"]: "".join(line for line in cell["source"] if not ANSWER.match(line.strip()))
        for cell in cells
        if cell["metadata"].get("nbgrader", {}).get("solution")
    }


class Links:
    """Map the links of a lab to pages of the site, and collect the pictures to copy."""

    def __init__(self, lab: str, root: Path):
        self.folder, self.root = posixpath.dirname(lab), root
        self.copied: dict[str, Path] = {}

    def picture(self, href: str) -> Path | None:
        place = posixpath.normpath(posixpath.join("labs", self.folder, href.partition("#")[0]))
        path = self.root / place
        return path if path.suffix in (".svg", ".png") and path.is_file() else None

    def address(self, href: str) -> str | None:
        """Return the address in the site of a link as written, or None if it leads nowhere."""
        path, _, part = href.partition("#")
        place, part = (
            posixpath.normpath(posixpath.join("labs", self.folder, path)),
            f"#{part}" if part else "",
        )
        if picture := self.picture(href):
            self.copied[f"labs/{self.folder}/{picture.name}"] = picture
            return picture.name
        if lab := re.fullmatch(r"(?:labs|work)/([\w/]+)\.ipynb", place):
            return f"../../labs/{lab[1]}.html{part}"
        if lesson := re.fullmatch(r"course/([\w/]+)\.(?:ipynb|md)", place):
            return f"../../lessons/{lesson[1]}.html{part}"
        return None


def linked(html: str, address: str, root: Path = ROOT) -> str:
    """Lead a page's links to a lab in the list of labs to the lab's own page."""
    up = "../" * address.count("/")
    for lab in labs(root):
        if address != LISTED:
            html = html.replace(f'href="{up}{LISTED}#{anchor(lab)}"', f'href="{up}labs/{lab}.html"')
            continue
        row = f'<li id="{anchor(lab)}">'
        if row in html:
            at = html.index("<br>", html.index(row)) + len("<br>")
            html = f'{html[:at]}<a href="labs/{lab}.html">Open in this browser</a> · {html[at:]}'
    return html


def put(out: Path, made: dict[str, bytes], root: Path = ROOT) -> int:
    """Write the labs into a folder that holds the site, lead its links to them, and pack all files. Return their
    size in bytes."""
    for name, content in made.items():
        (out / name).parent.mkdir(parents=True, exist_ok=True)
        (out / name).write_bytes(content)
    for path in out.rglob("*.html"):
        html, address = path.read_text(encoding="utf-8"), path.relative_to(out).as_posix()
        path.write_text(linked(html, address, root), encoding="utf-8")
    return sum(map(len, made.values()))


def compile_ahead(out: Path, root: Path = ROOT, say=print) -> None:
    """Compile the modules that a first check in a page loads. If that fails here, each page compiles them every
    time."""
    name, wheel = numpy()
    archives = {"numpy.zip": wheel.read_bytes(), "judge.zip": (out / "assets/judge.zip").read_bytes()}
    try:
        found = compiled.compiled(
            out, archives | {"lab.zip": bundle.of_lab(FIRST, root)}, "/judge", CHECKED, "judge"
        )
    except compiled.NotCompiled as problem:
        say(f"site: {problem}")
    else:
        shared = {place: code for place, code in found.items() if not place.startswith("grader/topics/")}
        (out / BYTECODE).write_bytes(bundle.zipped(shared))  # labs of one topic have files of the same name


def pack(out: Path) -> int:
    """Write a .gz next to each file that it makes smaller, for servers that send such files. Return the bytes of all
    files, packed."""
    size = 0
    for path in sorted(path for path in out.rglob("*") if path.is_file() and path.suffix != ".gz"):
        content = path.read_bytes()
        packed = gzip.compress(content, 9, mtime=0) if path.suffix in PACKED else content
        if len(packed) < len(content):
            path.with_name(f"{path.name}.gz").write_bytes(packed)
        size += min(len(packed), len(content))
    return size
