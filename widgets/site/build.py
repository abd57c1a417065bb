"""Write the whole site into one folder. Existing files are replaced only if an earlier build left them."""

import posixpath
import re
import shutil
from collections.abc import Callable
from contextlib import suppress
from importlib.resources import files
from pathlib import Path

from widgets import static
from widgets.site import compiled, frame, lesson_page, models, npm, outputs, pages, search
from widgets.site.contents import (
    GLOSSARY,
    SOURCES,
    SOURCES_TITLE,
    anchor,
    contents,
    page_address,
    relative,
    root_of,
)
from widgets.site.figures import Figures
from widgets.site.frame import ICON, Page
from widgets.site.lesson_page import Written
from widgets.site.lessons import Text, references
from widgets.site.topics import Topic, topics

ROOT = Path(__file__).parents[2]
MARK = "assets/models.zip"  # a folder that holds this is one of ours
LOADED = """
import sys
sys.path.insert(0, '/models')
import widgets.site.inside
from widgets.registry import find, places
find(next(iter(places())))
"""
OWN = ("page.css", "book.css", "print.css", "theme.js", "book.js", "search.js", "live.js", "moved.js")


def _lead(root: Path, pictures: set[str], known: set[str]) -> Callable[[Text, str], str | None]:
    """Return where a link of a lesson's page leads in the site."""

    def address(place: str, at: str) -> str | None:
        if match := re.fullmatch(r"(?:work|labs)/([\w/]+)\.ipynb", place):
            return f"labs.html#{anchor(match[1])}"
        name = re.sub(r"\.(ipynb|md)$", "", place.removeprefix("course/"))
        if not place.startswith("course/"):
            return None
        if name == "start":
            return f"index.html{at}"
        if match := re.fullmatch(r"simulators/\d\d_(\w+)", name):
            return f"simulators/{match[1]}.html"
        if name in known:
            return f"lessons/{name}.html{at}"
        if (root / place).is_file() and Path(place).suffix in (".svg", ".png"):
            pictures.add(name)
            return f"lessons/{name}"
        return None

    def lead(page: Text, href: str) -> str | None:
        path, _, part = href.partition("#")
        place = posixpath.normpath(posixpath.join("course", posixpath.dirname(page.name), path))
        # JupyterLab's name of a heading keeps its letters and marks, a page's own has neither
        part = re.sub(r"[^\w]+", "-", part.lower()).strip("-")
        there = address(place, f"#{part}" if part else "")
        return there and relative(there, page_address(page))

    return lead


def _assets() -> dict[str, bytes]:
    own = files("widgets.site")
    return {
        **{f"assets/{name}": own.joinpath(name).read_bytes() for name in OWN},
        "assets/scene.css": static.css().encode(),
        "assets/scene.js": static.javascript().encode(),
        "assets/icon.svg": ICON.encode(),
        MARK: models.zipped(),
    }


def _printed(text: Text, say) -> list[str]:
    found, wrong = outputs.outputs(text)
    if wrong:
        say(f"{text.name}: a cell did not run here, so its page shows the code alone: {wrong}")
    return found


def _ways(places: list[tuple[str, str]], first: tuple[str, str], last: tuple[str, str]) -> dict[str, tuple]:
    """Return address -> (the page before, the page after)."""
    chain = [first, *places, last]

    def way(to: tuple[str, str], here: str) -> tuple[str, str]:
        return relative(to[0], here), to[1]

    return {here: (way(chain[i], here), way(chain[i + 2], here)) for i, (here, _) in enumerate(places)}


def _named(topic: Topic, page: Text) -> str:
    """Return the name of a page in lists of pages."""
    return f"{topic.number} {page.title if topic.lesson.in_pages else topic.title}"


def _lessons(found: list[Topic], written: dict[str, Written]) -> dict[str, str]:
    """Build the chapters, page by page, and after them the glossary and the list of the sources."""
    every = [(topic, page) for topic in found if topic.lesson for page in topic.lesson.pages]
    chapters = [(page_address(page), _named(topic, page)) for topic, page in every]
    last = [(GLOSSARY, "Glossary"), (SOURCES, SOURCES_TITLE)]
    ways = _ways([*chapters, *last], ("index.html", "All topics"), ("labs.html", "All labs"))
    pages = {page_address(page): (topic, _title(topic, page), topic.question) for topic, page in every}
    pages[GLOSSARY] = (None, "Glossary", "Every term of the course in a sentence or two.")
    pages[SOURCES] = (None, SOURCES_TITLE, "Every item of the course's five sources, and its section.")
    return {
        address: frame.html(
            Page(
                title=f"{title} · Tile by Tile",
                description=description,
                body=frame.between(written[address].body, *ways[address]),
                contents=contents(found, root_of(address), address, topic, written[address].body),
                kind="lesson",
                root=root_of(address),
                live=written[address].live,
            )
        )
        for address, (topic, title, description) in pages.items()
    }


def _title(topic: Topic, page: Text) -> str:
    return f"{page.title} · {topic.title}" if topic.lesson.in_pages else topic.title


def _moved(found: list[Topic], written: dict[str, Written]) -> dict[str, str]:
    """Return a page at a lesson's old address that leads to its first page, or from an old heading to its new page."""
    made = {}
    for topic in (topic for topic in found if topic.lesson and topic.lesson.in_pages):
        old, places = f"lessons/{topic.lesson.name}.html", {}
        for page in topic.lesson.pages:
            address = page_address(page)
            for name in re.findall(r'<(?:h[23]|a|figure)\b[^>]*? id="([^"]+)"', written[address].body):
                places.setdefault(name, f"{relative(address, old)}#{name}")
        first = relative(page_address(topic.lesson.pages[0]), old)
        made[old] = frame.moved(topic.title, first, places)
    return made


def _simulators(found: list[Topic], figures: dict[str, Figures]) -> dict[str, str]:
    every = [(f"simulators/{one.name}.html", one.title) for topic in found for one in topic.simulators]
    ways = _ways(every, ("index.html", "All topics"), ("labs.html", "All labs"))
    made = {}
    for topic in found:
        for one in topic.simulators:
            address = f"simulators/{one.name}.html"
            made[address] = frame.html(
                Page(
                    title=f"{one.title} · Tile by Tile",
                    description=one.question,
                    picture=one.name,
                    body=frame.between(
                        pages.simulator_page(one, topic, figures.get(topic.slug)), *ways[address]
                    ),
                    contents=contents(found, "../", address, topic),
                    kind="simulator",
                    root="../",
                    live=True,
                )
            )
    return made


def _others(found: list[Topic]) -> dict[str, str]:
    cover = Page(
        "Tile by Tile",
        pages.TAGLINE,
        pages.cover(found),
        contents(found, "", "index.html"),
        "cover",
        live=True,
    )
    labs = Page(
        "Labs · Tile by Tile",
        "The labs of the course, as pages of this site and as notebooks.",
        pages.labs(found),
        contents(found, "", "labs.html"),
        "labs",
    )
    return {"index.html": frame.html(cover), "labs.html": frame.html(labs)}


def _notebooks(root: Path, found: list[Topic]) -> dict[str, bytes]:
    """Return the notebooks themselves, where their links to each other hold."""
    names = [f"course/{page.name}.ipynb" for topic in found if topic.lesson for page in topic.lesson.pages]
    names += [f"labs/{lab.path}.ipynb" for topic in found for lab in topic.labs]
    return {name: (root / name).read_bytes() for name in names if (root / name).is_file()}


def make(root: Path = ROOT, run: bool = True, say=print) -> dict[str, bytes]:
    """Return every file but npm's, by its path. Without `run` the lessons' code is shown but not run."""
    found = topics(root)
    pictures: set[str] = set()
    read = [topic for topic in found if topic.lesson]
    others = references(root / "course")
    known = {page.name for topic in read for page in topic.lesson.pages} | {page.name for page in others}
    lead = _lead(root, pictures, known)
    figures = {topic.slug: Figures(str(int(topic.number)), lead) for topic in read}
    written = {page_address(page): lesson_page.write_apart(page, lead) for page in others}
    for topic in read:
        written |= lesson_page.write(
            topic, figures[topic.slug], lambda text: _printed(text, say) if run else None
        )
    html = _others(found) | _lessons(found, written) | _moved(found, written) | _simulators(found, figures)
    made = _assets() | _notebooks(root, found) | {name: text.encode() for name, text in html.items()}
    prose = {address: one.prose for address, one in written.items()}
    made["assets/search-data.js"] = search.index(found, prose)
    for name in sorted(pictures):
        made[f"lessons/{name}"] = (root / "course" / name).read_bytes()
    return made


def put(out: Path, made: dict[str, bytes]) -> int:
    """Write the whole folder again, with the files from npm, and return its size in bytes."""
    if out.exists() and any(out.iterdir()) and not (out / MARK).exists():
        raise ValueError(
            f"out must be a new or empty folder, or an earlier site, got {out}; name another one"
        )
    npm.ready()  # before anything is removed
    shutil.rmtree(out, ignore_errors=True)
    for name, content in made.items():
        (out / name).parent.mkdir(parents=True, exist_ok=True)
        (out / name).write_bytes(content)
    size = sum(map(len, made.values())) + npm.unpack(out)
    compile_ahead(out)
    return size


def compile_ahead(out: Path) -> None:
    """Put the bytecode of the simulators' modules into a site. Where it can't be made here, each page makes its own."""
    texts = (out / MARK).read_bytes()
    with suppress(compiled.NotCompiled):
        code = compiled.compiled(out, {"models.zip": texts}, "/models", LOADED, "models")
        (out / MARK).write_bytes(models.archive(models.members(texts) | code))
