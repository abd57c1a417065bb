"""Everything into one folder; what stands there is replaced only if an earlier build left it."""

import posixpath
import re
import shutil
from collections.abc import Callable
from importlib.resources import files
from pathlib import Path

from widgets import static
from widgets.site import frame, lesson_page, models, npm, outputs, pages, search
from widgets.site.contents import GLOSSARY, anchor, contents, topic_address
from widgets.site.frame import ICON, Page
from widgets.site.lesson_page import Written
from widgets.site.lessons import Lesson, glossary
from widgets.site.topics import Topic, topics

ROOT = Path(__file__).parents[2]
MARK = "assets/models.zip"  # a folder that holds this is one of ours
OWN = ("page.css", "book.css", "print.css", "theme.js", "book.js", "search.js", "live.js")


def _lead(root: Path, pictures: set[str], known: set[str]) -> Callable[[str], str | None]:
    """Where a link of a lesson leads in the site."""

    def lead(href: str) -> str | None:
        path, _, part = href.partition("#")
        place = posixpath.normpath(posixpath.join("course", path))
        at = f"#{part}" if part else ""
        if match := re.fullmatch(r"(?:work|labs)/([\w/]+)\.ipynb", place):
            return f"../labs.html#{anchor(match[1])}"
        name = re.sub(r"\.(ipynb|md)$", "", place.removeprefix("course/"))
        if place.startswith("course/") and name == "start":
            return f"../index.html{at}"
        if match := re.fullmatch(r"simulators/\d\d_(\w+)", name):
            return f"../simulators/{match[1]}.html"
        if place.startswith("course/") and name in known:
            return f"{name}.html{at}"
        if (
            place.startswith("course/")
            and (root / place).is_file()
            and Path(place).suffix in (".svg", ".png")
        ):
            pictures.add(name)
            return name
        return None

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


def _printed(lesson: Lesson, say) -> list[str]:
    found, wrong = outputs.outputs(lesson)
    if wrong:
        say(f"{lesson.path.name}: a cell did not run here, so its page shows the code alone: {wrong}")
    return found


def _ways(places: list[tuple[str, str]], first: tuple[str, str], last: tuple[str, str]) -> dict[str, tuple]:
    """address -> (the page before, the page after), from one folder deep."""
    chain = [first, *places, last]
    up = [(f"../{address}", title) for address, title in chain]
    return {address: (up[i], up[i + 2]) for i, (address, _) in enumerate(places)}


def _lessons(found: list[Topic], written: dict[str, Written]) -> dict[str, str]:
    """The chapters and, as the last of them, the glossary."""
    chapters = [(topic_address(t), f"{t.number} {t.title}") for t in found if t.lesson] + [
        (GLOSSARY, "Glossary")
    ]
    ways = _ways(chapters, ("index.html", "All topics"), ("labs.html", "All labs"))
    pages = {topic_address(t): (t, t.title, t.question, written[t.slug]) for t in found if t.lesson}
    pages[GLOSSARY] = (
        None,
        "Glossary",
        "Every term of the course in a sentence or two.",
        written["glossary"],
    )
    return {
        address: frame.html(
            Page(
                title=f"{title} · Tile by Tile",
                description=description,
                body=frame.between(chapter.body, *ways[address]),
                contents=contents(found, "../", address, topic, chapter.body),
                kind="lesson",
                root="../",
                live=chapter.live,
            )
        )
        for address, (topic, title, description, chapter) in pages.items()
    }


def _simulators(found: list[Topic], written: dict[str, Written]) -> dict[str, str]:
    every = [(f"simulators/{one.name}.html", one.title) for topic in found for one in topic.simulators]
    ways = _ways(every, ("index.html", "All topics"), ("labs.html", "All labs"))
    made = {}
    for topic in found:
        for one in topic.simulators:
            address = f"simulators/{one.name}.html"
            figures = written[topic.slug].figures if topic.lesson else None
            made[address] = frame.html(
                Page(
                    title=f"{one.title} · Tile by Tile",
                    description=one.question,
                    picture=one.name,
                    body=frame.between(pages.simulator_page(one, topic, figures), *ways[address]),
                    contents=contents(found, "../", address, topic),
                    kind="simulator",
                    root="../",
                    live=True,
                )
            )
    return made


def _others(found: list[Topic]) -> dict[str, str]:
    cover = Page(
        "Tile by Tile", pages.TAGLINE, pages.cover(found), contents(found, "", "index.html"), "cover"
    )
    labs = Page(
        "Labs · Tile by Tile",
        "The labs of the course run in JupyterLab.",
        pages.labs(found),
        contents(found, "", "labs.html"),
        "labs",
    )
    return {"index.html": frame.html(cover), "labs.html": frame.html(labs)}


def _notebooks(root: Path, found: list[Topic]) -> dict[str, bytes]:
    """The notebooks themselves, where their links to each other hold."""
    names = [f"course/{topic.lesson.name}.ipynb" for topic in found if topic.lesson]
    names += [f"labs/{lab.path}.ipynb" for topic in found for lab in topic.labs]
    return {name: (root / name).read_bytes() for name in names if (root / name).is_file()}


def make(root: Path = ROOT, run: bool = True, say=print) -> dict[str, bytes]:
    """Every file but npm's, by its place; without `run` the lessons' code is shown but not run."""
    found = topics(root)
    pictures: set[str] = set()
    lead = _lead(root, pictures, {topic.lesson.name for topic in found if topic.lesson} | {"glossary"})
    written = {
        topic.slug: lesson_page.write(
            topic, root / "course", lead, _printed(topic.lesson, say) if run else None
        )
        for topic in found
        if topic.lesson
    }
    written["glossary"] = lesson_page.write_glossary(glossary(root / "course"), lead)
    html = _others(found) | _lessons(found, written) | _simulators(found, written)
    made = _assets() | _notebooks(root, found) | {name: text.encode() for name, text in html.items()}
    prose = {topic.lesson.name: written[topic.slug].prose for topic in found if topic.lesson}
    prose["glossary"] = written["glossary"].prose
    made["assets/search-data.js"] = search.index(found, prose)
    for name in sorted(pictures):
        made[f"lessons/{name}"] = (root / "course" / name).read_bytes()
    return made


def put(out: Path, made: dict[str, bytes]) -> int:
    """Write the folder anew, what comes from npm included; its size in bytes."""
    if out.exists() and any(out.iterdir()) and not (out / MARK).exists():
        raise ValueError(
            f"out must be a new or empty folder, or an earlier site, got {out}; name another one"
        )
    npm.ready()  # before anything is removed
    shutil.rmtree(out, ignore_errors=True)
    for name, content in made.items():
        (out / name).parent.mkdir(parents=True, exist_ok=True)
        (out / name).write_bytes(content)
    return sum(map(len, made.values())) + npm.unpack(out)
