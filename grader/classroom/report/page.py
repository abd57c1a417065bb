"""Write the report as one page of HTML. Students' text is escaped, nothing is fetched, no script runs."""

import datetime
import statistics
from collections.abc import Iterable
from pathlib import Path

from grader.classroom.report import plots
from grader.classroom.report.alike import Pair, Written
from grader.classroom.report.facts import STATES, Asked, Facts
from grader.judge.report import escaped

POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
STYLE = Path(__file__).with_name("page.css")
MOST_MISTAKES = 5
MOST_SHOWN = 20_000  # characters of one answer
NOT_A_GRADE = (
    "None of this is a grade, and no points follow from it. Two right answers to one question can be much alike, because the "
    "lab leads to them, because two people learned together, or because one copied. Only a person who looks at both and asks "
    "can tell. The comparison leaves out names, comments, spaces, and text that the lab hands out."
)


def html(facts: Facts) -> str:
    title = f"{facts.lab}: how the class fared"
    sections = [
        _head(facts, title),
        _overview(facts),
        _questions(facts),
        _everybody(facts),
        _waiting(facts),
        _mistakes(facts),
        _alike(facts),
    ]
    return document(title, sections)


def document(title: str, sections: list[str]) -> str:
    """A whole page with the report's style."""
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n<meta name="robots" content="noindex">\n'
        f"<title>{escaped(title)}</title>\n<style>\n{STYLE.read_text(encoding='utf-8')}</style>\n</head>\n"
        f"<body>\n<main>\n{chr(10).join(filter(None, sections))}\n</main>\n</body>\n</html>\n"
    )


def _head(facts: Facts, title: str) -> str:
    middle = statistics.median([one.points for one in facts.entered] or [0.0])
    of = facts.standings[0].of if facts.standings else 0.0
    waiting, judged = sum(bool(one.waiting) for one in facts.entered), {one.student for one in facts.entered}
    figures = (
        (len(facts.entered), "handed in and judged"),
        (len({*facts.not_judged, *(one.student for one in facts.standings)} - judged), "nothing judged of"),
        (f"{middle:g}", f"points is the median, of {of:g}"),
        (waiting, "have cells that wait for a person"),
    )
    items = "".join(
        f"<li><b>{escaped(value)}</b><span>{escaped(what)}</span></li>" for value, what in figures
    )
    today = datetime.date.today().isoformat()
    return (
        f'<h1>{escaped(title)}</h1>\n<p class="lead">Made on {today}, judged in {escaped(facts.mode)} mode. Points are those '
        f'of the gradebook on that day. This page names students, so keep it where you keep grades.</p>\n<ul class="figures">{items}</ul>'
    )


def _overview(facts: Facts) -> str:
    values = [one.points for one in facts.entered]
    most = facts.standings[0].of if facts.standings else 0.0
    return f"<h2>Points of the whole lab</h2>\n<div class=card>{plots.histogram(values, most, 'The whole lab')}</div>"


def _questions(facts: Facts) -> str:
    rows = "\n".join(_question(asked) for asked in facts.asked)
    return f"<h2>Question by question</h2>\n{plots.legend()}\n{rows}"


def _question(asked: Asked) -> str:
    counts = {state: asked.count(state) for state in STATES}
    told = ", ".join(f"{plots.MEANING[state]}: {count}" for state, count in counts.items() if count)
    mean = sum(asked.points.values()) / len(asked.points) if asked.points else 0.0
    worth = (
        f"{asked.of:g} points{', bonus' if asked.bonus else ''}{', graded by hand' if asked.by_hand else ''}"
    )
    more = ""
    if len(set(asked.points.values())) > 1:
        drawn = plots.histogram(list(asked.points.values()), asked.of, asked.name)
        more = f"<details><summary>points, on average {mean:.2f}</summary>{drawn}</details>"
    return (
        f'<div class="question"><div><h3>{escaped(asked.name)}</h3><small>{escaped(asked.notebook)}: {worth}</small></div>'
        f'<div>{plots.shares(counts, f"{asked.name}: {told}")}<div class="numbers">{escaped(told) or "nobody"}</div>{more}</div></div>'
    )


def _everybody(facts: Facts) -> str:
    """Name the questions that distinguish no students, because they are too easy, too hard or broken."""
    settled = [one for one in facts.asked if one.settled > 1]
    rows = (
        ("No student has all points", [one for one in settled if not one.count("full")]),
        ("All students have all points", [one for one in settled if one.count("full") == one.settled]),
    )
    items = "".join(
        f"<li>{what}: {', '.join(f'<b>{escaped(facts.name(one))}</b>' for one in found) or 'of no question'}.</li>"
        for what, found in rows
    )
    return f"<h2>Questions that all students or none pass</h2>\n<ul>{items}</ul>"


def _waiting(facts: Facts) -> str:
    waits = [(one.student, one.waiting) for one in facts.entered if one.waiting]
    rows = "".join(
        f"<tr><td>{escaped(student)}</td><td class=n>{len(cells)}</td><td>{escaped(', '.join(cells))}</td></tr>"
        for student, cells in waits
    )
    table = _table(("student", "cells", "which"), rows) if waits else "<p>No student waits.</p>"
    open_ = "".join(
        f"<tr><td>{escaped(student)}</td><td>{escaped(name)}</td></tr>"
        for student, name in facts.inconclusive
    )
    unsettled = _table(("student", "question"), open_) if open_ else "<p>Everything else was settled.</p>"
    unread = "".join(
        f"<li>{escaped(student)}: {escaped(why)}</li>"
        for student, found in facts.unread.items()
        for why in found.values()
    )
    rest = "".join(f"<li>{escaped(s)}: {escaped(why)}</li>" for s, why in facts.not_judged.items())
    return (
        f"<h2>Who waits for a person</h2>\n{table}\n<h2>What the grader could not settle</h2>\n"
        f'<p class="muted">Its own trouble, with no points yet. Judge the class again first, and grade by hand any that remain.</p>'
        f"\n{unsettled}"
        + (f"\n<h2>Notebooks that can't be read</h2>\n<ul>{unread}</ul>" if unread else "")
        + (f"\n<h2>Not judged yet</h2>\n<ul>{rest}</ul>" if rest else "")
    )


def _mistakes(facts: Facts) -> str:
    cards = []
    for asked in facts.asked:
        found = sorted(asked.mistakes.items(), key=lambda row: (-row[0][1], -row[1], row[0][0]))
        if not found:
            continue
        rows = "".join(
            f"<tr><td class=n>{count}</td><td>{escaped(what)}{'' if known else ' <small>(not recognised)</small>'}</td></tr>"
            for (what, known), count in found[:MOST_MISTAKES]
        )
        more = (
            f'<p class="muted">and {len(found) - MOST_MISTAKES} more</p>'
            if len(found) > MOST_MISTAKES
            else ""
        )
        cards.append(
            f'<div class="card"><h3>{escaped(asked.name)}</h3>{_table(("students", "what went wrong"), rows)}{more}</div>'
        )
    body = "\n".join(cards) or "<p>No failure is on record.</p>"
    return (
        "<h2>Commonest mistakes</h2>\n<p class=muted>A recognised mistake reproduces the student's output over several cases. "
        f"The other rows show the part that failed and where the report advised the student to look.</p>\n{body}"
    )


def _alike(facts: Facts) -> str:
    blocks = [block for asked in facts.asked for block in _alike_of(asked)]
    body = "\n".join(blocks) or "<p>No two answers are more alike than the lab makes them.</p>"
    return f'<h2>Answers that are much alike</h2>\n<p class="note">{NOT_A_GRADE}</p>\n{body}'


def _alike_of(asked: Asked) -> Iterable[str]:
    found = asked.alike
    if not found.identical and not found.pairs:
        return
    groups = "".join(
        f"<li>{len(group)} students: {escaped(', '.join(group))}{_usual(asked, group)}</li>"
        for group in found.identical
    )
    same = f"<p>The same but for names, comments and spaces:</p><ul>{groups}</ul>" if groups else ""
    pairs = "\n".join(_pair(pair) for pair in found.pairs)
    more = f'<p class="muted">and {found.more} pairs more, less alike than these</p>' if found.more else ""
    yield f'<div class="card"><h3>{escaped(asked.name)}</h3>{same}{pairs}{more}</div>'


def _usual(asked: Asked, group: list[str]) -> str:
    many = len(group) > 3 and len(group) * 4 >= len(asked.states)
    return " <small>(a number this large may mean the usual way to write it)</small>" if many else ""


def _pair(pair: Pair) -> str:
    sides = "".join(
        f"<div><b>{escaped(one.whose)}</b><pre>{_marked(one, marks)}</pre></div>"
        for one, marks in zip((pair.one, pair.other), pair.marks, strict=True)
    )
    return (
        f"<details><summary>{escaped(pair.one.whose)} and {escaped(pair.other.whose)} "
        f"<small>{100 * pair.share:.0f}% in common, by weight</small></summary>"
        f'<div class="sides">{sides}</div></details>'
    )


def _marked(one: Written, marks: list[tuple[int, int]]) -> str:
    """Return the answer with its shared runs marked. A very long one is cut."""
    text, at, parts = one.source[:MOST_SHOWN], 0, []
    for start, end in marks:
        if start >= len(text):
            break
        parts += [escaped(text[at:start]), f"<mark>{escaped(text[start:end])}</mark>"]
        at = end
    cut = "\n[the rest is left out]" if len(one.source) > MOST_SHOWN else ""
    return "".join(parts) + escaped(text[at:]) + cut


def _table(heads: tuple[str, ...], rows: str) -> str:
    titles = "".join(f'<th scope="col">{head}</th>' for head in heads)
    return f'<div class="wide"><table><thead><tr>{titles}</tr></thead><tbody>{rows}</tbody></table></div>'
