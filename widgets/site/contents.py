"""List the chapters next to every page, with the open page, the rest of its topic, and the sections of a lesson."""

import posixpath
import re
from html import escape

from widgets.site.lessons import Lesson, Text
from widgets.site.topics import Lab, Topic

NUMBER = '<span class="number">{}</span> '


def anchor(path: str) -> str:
    """labs.html#01_gemm_tiling-kernel"""
    return path.replace("/", "-")


def lab_address(lab: Lab) -> str:
    return f"labs.html#{anchor(lab.path)}"


def page_address(page: Text) -> str:
    return f"lessons/{page.name}.html"


def topic_address(topic: Topic) -> str:
    """Return a chapter's first page, which is its lesson's or its section of the front page."""
    return page_address(topic.lesson.pages[0]) if topic.lesson else f"index.html#{topic.slug}"


def relative(address: str, here: str) -> str:
    """Return a link from one page of the site to another, both from its root."""
    path, hash_, part = address.partition("#")
    return posixpath.relpath(path, posixpath.dirname(here) or ".") + hash_ + part


def root_of(here: str) -> str:
    """Return the way from a page up to the site's root, such as '../' from lessons/glossary.html."""
    return "../" * here.count("/")


def _link(address: str, title: str, root: str, here: str) -> str:
    current = ' aria-current="page"' if address == here else ""
    return f'<a href="{root}{address}"{current}>{title}</a>'


def _sections(prose: str) -> str:
    heads = re.findall(r'<h2 id="([^"]+)">(.*?)</h2>', prose)
    items = "".join(f'<li><a href="#{name}">{re.sub("<[^>]+>", "", title)}</a></li>' for name, title in heads)
    return f'<ol class="sections">{items}</ol>' if items else ""


def _pages(lesson: Lesson, root: str, here: str, prose: str) -> str:
    """List a lesson's pages, the open one with its sections."""
    if not lesson.in_pages:
        return _sections(prose)
    items = ""
    for page in lesson.pages:
        address = page_address(page)
        inside = _sections(prose) if address == here else ""
        items += f"<li>{_link(address, escape(page.title), root, here)}{inside}</li>"
    return f'<ol class="pages">{items}</ol>'


def _inside(topic: Topic, root: str, here: str, prose: str) -> str:
    """List the sections of the open chapter."""
    simulators = [(f"simulators/{d.name}.html", escape(d.title)) for d in topic.simulators]
    labs = [(lab_address(lab), escape(lab.short)) for lab in topic.labs]
    parts = _pages(topic.lesson, root, here, prose) if topic.lesson else ""
    for name, rows in (("Simulators", simulators), ("Labs", labs)):
        items = "".join(f"<li>{_link(address, title, root, here)}</li>" for address, title in rows)
        parts += f'<p class="kind">{name}</p><ul>{items}</ul>' if items else ""
    return parts


GLOSSARY = "lessons/glossary.html"
SOURCES, SOURCES_TITLE = "lessons/from_the_sources.html", "Where the sources are taught"


def contents(topics: list[Topic], root: str, here: str, topic: Topic | None = None, prose: str = "") -> str:
    """Return the list of chapters. `here` is this page's address from the root, `prose` its text with the sections."""
    rows = [f"<li>{_link('index.html', 'Start', root, here)}</li>"]
    for one in topics:
        title = f"{NUMBER.format(one.number)}{escape(one.title)}"
        inside = _inside(one, root, here, prose) if one == topic else ""
        first = (
            "" if one.lesson and one.lesson.in_pages else here
        )  # its first page is current in the list of pages
        rows.append(f'<li class="chapter">{_link(topic_address(one), title, root, first)}{inside}</li>')
    sections = _sections(prose) if here == GLOSSARY else ""
    rows.append(f"<li>{_link(GLOSSARY, 'Glossary', root, here)}{sections}</li>")
    rows.append(f"<li>{_link(SOURCES, SOURCES_TITLE, root, here)}</li>")
    rows.append(f"<li>{_link('labs.html', 'All labs', root, here)}</li>")
    return f'<p class="label">Contents</p><ul class="chapters">{"".join(rows)}</ul>'
