"""List every section of every page as (address, chapter, title, words), so that search needs no server."""

import json
import re
from html import unescape
from html.parser import HTMLParser

from widgets.declare import Declaration
from widgets.site.contents import GLOSSARY, lab_address, page_address
from widgets.site.stills import opening
from widgets.site.topics import Topic

SKIPPED = {"svg", "script", "style", "math"}  # a formula's letters aren't words
VOID = {"br", "img", "hr", "input", "wbr"}
SECTION = re.compile(r'<h[23] id="([^"]+)">(.*?)</h[23]>', re.S)


class _Words(HTMLParser):
    def __init__(self, html: str):
        super().__init__()
        self.found, self.skipping = [], 0
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        hidden = tag in SKIPPED or dict(attrs).get("class") == "here"
        self.skipping += tag not in VOID and (self.skipping > 0 or hidden)

    def handle_endtag(self, tag):
        self.skipping -= self.skipping > 0 and tag not in VOID

    def handle_data(self, data):
        if not self.skipping:
            self.found.append(data)


def words(html: str) -> str:
    return " ".join("".join(_Words(html).found).split())


def sections(address: str, chapter: str, title: str, prose: str) -> list[tuple]:
    """Return a lesson in pieces, each with the address of its heading."""
    parts = SECTION.split(prose)
    rows = [(address, chapter, title, words(parts[0]))]
    for name, heading, text in zip(*(parts[i::3] for i in (1, 2, 3)), strict=True):
        rows.append((f"{address}#{name}", chapter, unescape(words(heading)), words(text)))
    return rows


def terms(address: str, prose: str) -> list[tuple]:
    """Return the glossary, term by term."""
    found = re.findall(r'<p><a id="([^"]+)"></a><strong>(.*?)</strong>(.*?)</p>', prose, re.S)
    return [
        (f"{address}#{name}", "Glossary", words(term), words(text).lstrip(" :")) for name, term, text in found
    ]


def _simulator(one: Declaration, topic: Topic) -> tuple:
    scene = opening(one)
    said = [one.question, scene.takeaway, scene.summary, *one.presets]
    return f"simulators/{one.name}.html", f"{topic.title}, simulator", one.title, " ".join(said)


def index(topics: list[Topic], prose: dict[str, str]) -> bytes:
    """Return a script that holds the rows, so that it loads from a file as well. `prose` maps addresses to HTML."""
    rows = terms(GLOSSARY, prose.get(GLOSSARY, ""))
    for topic in topics:
        for page in topic.lesson.pages if topic.lesson else ():
            address, first = page_address(page), page == topic.lesson.pages[0]
            title = f"{topic.title}: {page.title}" if first and topic.lesson.in_pages else page.title
            rows += sections(address, f"{topic.number} {topic.title}", title, prose[address])
        rows += [_simulator(one, topic) for one in topic.simulators]
        rows += [(lab_address(lab), f"{topic.title}, lab", lab.title, lab.path) for lab in topic.labs]
    return f"window.tileByTile = {json.dumps(rows, ensure_ascii=False)};\n".encode()
