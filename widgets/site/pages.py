"""Write the pages outside the lessons, which are the cover, a simulator's own page, and the labs."""

from html import escape

from widgets.declare import Declaration
from widgets.registry import find
from widgets.site.contents import NUMBER, anchor, lab_address, topic_address
from widgets.site.figures import Figures
from widgets.site.lesson_page import LAB
from widgets.site.lessons import Shown
from widgets.site.listing import code
from widgets.site.shared import COURSE
from widgets.site.stills import card, simulator
from widgets.site.topics import Topic

TAGLINE = "Learn the kernels that run large language models: predict, play, write and measure."


def _listed(items: list[str], kind: str) -> str:
    return f'<ul class="{kind}">{"".join(items)}</ul>' if items else ""


def _topic(topic: Topic) -> str:
    doors = []
    if topic.lesson:
        doors.append(f'<li><a href="{topic_address(topic)}">Read the lesson</a></li>')
    doors += [f'<li><a href="{lab_address(lab)}">{escape(lab.title)}</a></li>' for lab in topic.labs]
    return (
        f'<section class="topic" id="{topic.slug}"><h2>{NUMBER.format(topic.number)}{escape(topic.title)}</h2>'
        f'<p class="lead">{escape(topic.question)}</p>{_listed(doors, "doors")}'
        f"{_listed([card(d) for d in topic.simulators], 'cards')}</section>\n"
    )


def cover(topics: list[Topic]) -> str:
    simulators = sum(len(topic.simulators) for topic in topics)
    read = [topic for topic in topics if topic.lesson]
    facts = (
        f"<b>{simulators}</b> simulators",
        f"<b>{len(read)}</b> lesson{'s' * (len(read) != 1)}",
        "no account, no server, no network",
        "keyboard and screen reader welcome",
    )
    begin = f'<p><a class="begin" href="{topic_address(read[0])}">Start reading</a></p>' if read else ""
    hero = (
        f'<section class="hero"><h1>Tile by Tile</h1><p class="lead">{TAGLINE}</p>'
        '<p class="lead">Press Play, or pull the tallest bar. The course’s own model answers inside this browser, here '
        f"and in every simulator below. Each asks one question. Guess before you look.</p>{begin}"
        f"{_listed([f'<li>{fact}</li>' for fact in facts], 'facts')}</section>\n"
    )
    one = find(COURSE)  # its steps play before Python is there
    live = f'<h2 class="tbt-unseen">Try one</h2>{simulator(one, Shown(one.name, {}), "simulator")}'
    return f'{hero}{live}<div id="topics">{"".join(map(_topic, topics))}</div>'


def simulator_page(declaration: Declaration, topic: Topic, figures: Figures | None) -> str:
    """Return a simulator's own page. `figures` are the figures of the topic's lesson, of which it may be one."""
    where = f'{NUMBER.format(topic.number)}<a href="../{topic_address(topic)}">{escape(topic.title)}</a>'
    if figures and declaration.name in figures.shown:
        address, number = figures.shown[declaration.name]
        there = f"../{address}#figure-{number}"
        where += f' · <a href="{there}">figure {figures.chapter}.{number} of the lesson</a>'
    return (
        f'<h1>{escape(declaration.title)}</h1><p class="crumb">{where}</p>'
        f'<h2 class="tbt-unseen">The simulator</h2>'
        f"{simulator(declaration, Shown(declaration.name, {}), 'simulator')}"
        f'<p class="aside">In a notebook: <code>show("{declaration.name}")</code></p>'
    )


def labs(topics: list[Topic]) -> str:
    parts = [
        "<h1>The labs</h1>",
        '<p class="lead">In a lab you write the kernel yourself. The grader checks it against a reference and '
        "counts its bytes, and on an NVIDIA GPU also times it. A lab that has a link for this browser is a page and is "
        "judged inside it. Each lab is a notebook for JupyterLab, too.</p>",
        "<p>For JupyterLab you need a copy of the project, on a machine with Python 3.11 or newer, git and make:</p>",
        code("make lab", "sh"),
        "<p>It sets everything up and opens the course. Your labs are in <code>work/</code>. "
        "The links to JupyterLab below open them while it runs.</p>",
    ]
    for topic in topics:
        rows = "".join(
            f'<li id="{anchor(lab.path)}">{escape(lab.title)}<br><a href="{LAB}/work/{lab.path}.ipynb">Open in '
            f'JupyterLab</a>: <code>work/{lab.path}.ipynb</code>, or <a href="labs/{lab.path}.ipynb" download>take '
            f"the notebook</a></li>"
            for lab in topic.labs
        )
        head = f"<h2>{NUMBER.format(topic.number)}{escape(topic.title)}</h2>"
        parts.append(f"{head}<ul>{rows}</ul>" if rows else "")
    return f'<article class="prose">{"".join(parts)}</article>'
