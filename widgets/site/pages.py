"""The four kinds of pages: front page, simulator, lesson, labs."""

import re
from html import escape

from widgets.declare import Declaration
from widgets.registry import find
from widgets.site.frame import card, page, simulator
from widgets.site.lessons import Lesson, Shown
from widgets.site.prose import Lead, code, markdown
from widgets.site.topics import Topic

TAGLINE = (
    "The kernels that run large language models, learned by predicting, playing, writing and measuring them."
)
NUMBER = '<span class="number">{}</span> '


def _listed(items: list[str], kind: str) -> str:
    return f'<ul class="{kind}">{"".join(items)}</ul>' if items else ""


def _topic(topic: Topic) -> str:
    doors = []
    if topic.lesson:
        doors.append(f'<li><a href="lessons/{topic.lesson.name}.html">Read the lesson</a></li>')
    doors += [
        f'<li><a href="labs.html#{anchor(lab.path)}">{escape(lab.title)}</a></li>' for lab in topic.labs
    ]
    return (
        f'<section class="topic" id="{topic.slug}"><h2>{NUMBER.format(topic.number)}{escape(topic.title)}</h2>'
        f'<p class="lead">{escape(topic.question)}</p>{_listed(doors, "doors")}'
        f"{_listed([card(d) for d in topic.simulators], 'cards')}</section>\n"
    )


def index(topics: list[Topic]) -> str:
    simulators = sum(len(topic.simulators) for topic in topics)
    read = sum(topic.lesson is not None for topic in topics)
    facts = (f"<b>{simulators}</b> simulators", f"<b>{read}</b> lesson{'s' * (read != 1)}",
             "no account, no server, no network", "keyboard and screen reader welcome")  # fmt: skip
    hero = (
        f'<section class="hero"><h1>Tile by Tile</h1><p class="lead">{TAGLINE}</p>'
        '<p class="lead">Every simulator below is live: move a control and the course’s own model answers, inside '
        "this browser. Each asks one question; guess before you look.</p>"
        f"{_listed([f'<li>{fact}</li>' for fact in facts], 'facts')}</section>\n"
    )
    body = hero + f'<div id="topics">{"".join(map(_topic, topics))}</div>'
    return page("Tile by Tile", TAGLINE, body)


def simulator_page(declaration: Declaration, topic: Topic) -> str:
    same = [
        f'<li><a href="{d.name}.html"{" aria-current=page" if d == declaration else ""}>{escape(d.title)}</a></li>'
        for d in topic.simulators
    ]
    read = (
        f'<li><a href="../lessons/{topic.lesson.name}.html">{escape(topic.title)}</a></li>'
        if topic.lesson
        else ""
    )
    aside = f"<h2>On this topic</h2>{_listed(same, 'same')}"
    aside += f"<h2>The lesson</h2><ul>{read}</ul>" if read else ""
    aside += f'<h2>In a notebook</h2><p><code>show("{declaration.name}")</code></p>'
    where = f"{NUMBER.format(topic.number)}<a href='../index.html#{topic.slug}'>{escape(topic.title)}</a>"
    body = (
        f'<p class="crumb">{where}</p><h1>{escape(declaration.title)}</h1>'
        f'<h2 class="tbt-unseen">The simulator</h2><div class="two">'
        f'{simulator(declaration, Shown(declaration.name, {}), "simulator")}<aside class="aside">{aside}</aside></div>'
    )
    return page(f"{declaration.title} · Tile by Tile", declaration.question, body, "../", live=True)


def lesson_page(lesson: Lesson, topic: Topic, around: tuple, lead: Lead, outputs: list[str] | None) -> str:
    """`around`: the lessons before and after; `outputs`: what each cell printed, if it was run."""
    parts, shown = [], 0
    for i, cell in enumerate(lesson.cells):
        if cell.kind == "markdown":
            parts.append(markdown(cell.text, lead))
            continue
        parts.append(code(cell.text) if cell.text.strip() else "")
        parts.append(outputs[i] if outputs else "")
        if cell.shown:
            shown += 1
            parts.append(simulator(find(cell.shown.name), cell.shown, f"simulator-{shown}", shown == 1))
    prose = "".join(parts)
    crumb = f'<p class="crumb">{NUMBER.format(topic.number)}Lesson</p>'
    body = f'<div class="lesson">{_contents(prose)}<article class="prose">{crumb}{prose}{_turn(around)}</article></div>'
    return page(f"{lesson.title} · Tile by Tile", topic.question, body, "../", live=shown > 0)


def _contents(prose: str) -> str:
    heads = re.findall(r'<h2 id="([^"]+)">(.*?)</h2>', prose)
    items = "".join(f'<li><a href="#{id}">{re.sub("<[^>]+>", "", title)}</a></li>' for id, title in heads)
    return (
        f'<nav class="contents" aria-label="Contents"><h2>Contents</h2><ol>{items}</ol></nav>'
        if heads
        else ""
    )


def _turn(around: tuple) -> str:
    signs = ("← {}", "{} →")
    links = [
        f'<a href="{lesson.name}.html">{sign.format(escape(lesson.title))}</a>'
        for sign, lesson in zip(signs, around, strict=True)
        if lesson
    ]
    return f'<nav class="turn" aria-label="Lessons">{"".join(links)}<a href="../index.html#topics">All topics</a></nav>'


def anchor(path: str) -> str:
    """labs.html#01_gemm_tiling-kernel"""
    return path.replace("/", "-")


def labs_page(topics: list[Topic]) -> str:
    parts = [
        "<h1>The labs run in JupyterLab</h1>",
        '<p class="lead">In a lab you write the kernel yourself. It is checked against a reference, its bytes are '
        "counted, and on an NVIDIA GPU it is timed. A static page can do none of that, so the labs are notebooks.</p>",
        "<p>In a copy of the project, on a machine with Python 3.11 or newer, git and make:</p>",
        code("make lab", "sh"),
        "<p>It sets everything up and opens the course. The labs lie in <code>work/</code>, and they are yours.</p>",
    ]
    for topic in topics:
        rows = "".join(
            f'<li id="{anchor(lab.path)}">{escape(lab.title)}<br><code>work/{lab.path}.ipynb</code></li>'
            for lab in topic.labs
        )
        head = f"<h2>{NUMBER.format(topic.number)}{escape(topic.title)}</h2>"
        parts.append(f"{head}<ul>{rows}</ul>" if rows else "")
    body = f'<article class="prose">{"".join(parts)}</article>'
    return page("Labs · Tile by Tile", "The labs of the course run in JupyterLab.", body)
