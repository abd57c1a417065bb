"""The list of chapters beside every page: where one is, what else the topic has, and the sections of a lesson."""

import re
from html import escape

from widgets.site.topics import Lab, Topic

NUMBER = '<span class="number">{}</span> '


def anchor(path: str) -> str:
    """labs.html#01_gemm_tiling-kernel"""
    return path.replace("/", "-")


def lab_address(lab: Lab) -> str:
    return f"labs.html#{anchor(lab.path)}"


def topic_address(topic: Topic) -> str:
    """A chapter's first page: its lesson, or its place on the front page."""
    return f"lessons/{topic.lesson.name}.html" if topic.lesson else f"index.html#{topic.slug}"


def _link(address: str, title: str, root: str, here: str) -> str:
    current = ' aria-current="page"' if address == here else ""
    return f'<a href="{root}{address}"{current}>{title}</a>'


def _sections(prose: str) -> str:
    heads = re.findall(r'<h2 id="([^"]+)">(.*?)</h2>', prose)
    items = "".join(f'<li><a href="#{name}">{re.sub("<[^>]+>", "", title)}</a></li>' for name, title in heads)
    return f'<ol class="sections">{items}</ol>' if items else ""


def _inside(topic: Topic, root: str, here: str, prose: str) -> str:
    """What the open chapter holds."""
    simulators = [(f"simulators/{d.name}.html", escape(d.title)) for d in topic.simulators]
    labs = [(lab_address(lab), escape(lab.short)) for lab in topic.labs]
    parts = _sections(prose)
    for name, rows in (("Simulators", simulators), ("Labs", labs)):
        items = "".join(f"<li>{_link(address, title, root, here)}</li>" for address, title in rows)
        parts += f'<p class="kind">{name}</p><ul>{items}</ul>' if items else ""
    return parts


GLOSSARY = "lessons/glossary.html"


def contents(topics: list[Topic], root: str, here: str, topic: Topic | None = None, prose: str = "") -> str:
    """`here`: this page's address from the root; `prose`: its text, whose sections are listed."""
    rows = [f"<li>{_link('index.html', 'Start', root, here)}</li>"]
    for one in topics:
        title = f"{NUMBER.format(one.number)}{escape(one.title)}"
        inside = _inside(one, root, here, prose) if one == topic else ""
        rows.append(f'<li class="chapter">{_link(topic_address(one), title, root, here)}{inside}</li>')
    sections = _sections(prose) if here == GLOSSARY else ""
    rows.append(f"<li>{_link(GLOSSARY, 'Glossary', root, here)}{sections}</li>")
    rows.append(f"<li>{_link('labs.html', 'All labs', root, here)}</li>")
    return f'<p class="label">Contents</p><ul class="chapters">{"".join(rows)}</ul>'
