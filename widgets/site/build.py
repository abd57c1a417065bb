"""Everything into one folder; what stands there is replaced only if an earlier build left it."""

import posixpath
import re
import shutil
from importlib.resources import files
from pathlib import Path

from widgets import static
from widgets.site import models, outputs, pages, pyodide
from widgets.site.frame import ICON
from widgets.site.lessons import Lesson
from widgets.site.prose import Lead
from widgets.site.topics import topics

ROOT = Path(__file__).parents[2]
MARK = "assets/models.zip"  # a folder that holds this is one of ours


def _lead(root: Path, pictures: set[str], known: set[str]) -> Lead:
    """Where a link of a lesson leads in the site."""

    def lead(href: str) -> str | None:
        path, _, part = href.partition("#")
        place = posixpath.normpath(posixpath.join("course", path))
        at = f"#{part}" if part else ""
        if match := re.fullmatch(r"(?:work|labs)/([\w/]+)\.ipynb", place):
            return f"../labs.html#{pages.anchor(match[1])}"
        name = re.sub(r"\.(ipynb|md)$", "", place.removeprefix("course/"))
        if place.startswith("course/") and name == "start":
            return f"../index.html{at}"
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
        "assets/page.css": own.joinpath("page.css").read_bytes(),
        "assets/live.js": own.joinpath("live.js").read_bytes(),
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


def make(root: Path = ROOT, run: bool = True, say=print) -> dict[str, bytes]:
    """Every file but Pyodide's, by its place; without `run` the lessons' code is shown but not run."""
    found = topics(root)
    lessons = [topic.lesson for topic in found if topic.lesson]
    made, pictures = _assets(), set()
    lead = _lead(root, pictures, {lesson.name for lesson in lessons})
    made["index.html"] = pages.index(found).encode()
    made["labs.html"] = pages.labs_page(found).encode()
    for topic in found:
        for one in topic.simulators:
            made[f"simulators/{one.name}.html"] = pages.simulator_page(one, topic).encode()
        if topic.lesson:
            at = lessons.index(topic.lesson)
            around = (lessons[at - 1] if at else None, lessons[at + 1] if at + 1 < len(lessons) else None)
            printed = _printed(topic.lesson, say) if run else None
            html = pages.lesson_page(topic.lesson, topic, around, lead, printed)
            made[f"lessons/{topic.lesson.name}.html"] = html.encode()
    for name in sorted(pictures):
        made[f"lessons/{name}"] = (root / "course" / name).read_bytes()
    return made


def put(out: Path, made: dict[str, bytes]) -> int:
    """Write the folder anew, Python for it included; its size in bytes."""
    if out.exists() and any(out.iterdir()) and not (out / MARK).exists():
        raise ValueError(
            f"out must be a new or empty folder, or an earlier site, got {out}; name another one"
        )
    pyodide.package()  # before anything is removed
    shutil.rmtree(out, ignore_errors=True)
    for name, content in made.items():
        (out / name).parent.mkdir(parents=True, exist_ok=True)
        (out / name).write_bytes(content)
    return sum(map(len, made.values())) + pyodide.unpack(out / "pyodide")
