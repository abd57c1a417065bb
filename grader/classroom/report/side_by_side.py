"""Show one question's answers of all students with their points, equal answers once, for a person to read in one
go."""

from collections import defaultdict

from grader.classroom.report import plots
from grader.classroom.report.alike import Written
from grader.classroom.report.facts import Asked, Facts
from grader.classroom.report.page import MOST_SHOWN, document
from grader.judge.report import escaped

ORDER = ("none", "part", "full", "open", "not begun")  # answers that lost points come first


def find(facts: Facts, name: str) -> list[Asked]:
    """Return the cells of this name, such as the reflections of all notebooks. ValueError lists the names there
    are."""
    topic = facts.lab.partition("_")[2]
    found = [one for one in facts.asked if name in _names(one, topic)]
    if not found:
        full = ", ".join(map(facts.name, facts.asked))
        raise ValueError(f"--question must be one of {full}, got {name!r}")
    return found


def _names(asked: Asked, topic: str) -> tuple[str, ...]:
    """Return the cell's names, with and without its topic or notebook."""
    cell = asked.name.removeprefix(f"{topic}.")
    return cell, f"{topic}.{cell}", f"{asked.notebook}: {cell}", f"{asked.notebook}: {asked.name}"


def html(facts: Facts, asked: Asked) -> str:
    title = f"{asked.name}: every answer"
    groups = _groups(asked)
    students = sum(len(group) for group in groups)
    absent = sorted(set(asked.states) - {one.student for group in groups for one in group})
    unread = [one for one in absent if asked.notebook in facts.unread.get(one, ())]
    absent = [one for one in absent if one not in unread]
    kind = "graded by hand" if asked.by_hand else f"judged in {facts.mode} mode"
    head = (
        f'<h1>{escaped(title)}</h1>\n<p class="lead">{escaped(facts.lab)}, {escaped(asked.notebook)}, {asked.of:g} points, '
        f"{escaped(kind)}. {_count(len(groups), 'different answer')} of {_count(students, 'student')}. Equal answers are shown once. "
        "This page names students, so keep it where you keep grades.</p>"
    )
    rest = f"<h2>Nothing written</h2>\n<p>{escaped(', '.join(absent))}</p>" if absent else ""
    odd = f"<h2>Could not be read</h2>\n<p>{escaped(', '.join(unread))}</p>" if unread else ""
    return document(title, [head, *(_answer(asked, group) for group in groups), odd, rest])


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


def _groups(asked: Asked) -> list[list[Written]]:
    """Students with the same text, those with the fewest points first."""
    same = defaultdict(list)
    for one in asked.written:
        same[one.source.strip()].append(one)
    groups = [sorted(group, key=lambda one: one.student) for group in same.values()]
    return sorted(groups, key=lambda group: (_rank(asked, group[0]), group[0].student))


def _rank(asked: Asked, one: Written) -> tuple[int, float]:
    state = asked.states.get(one.student, "open")
    return ORDER.index(state), asked.points.get(one.student, 0.0)


def _answer(asked: Asked, group: list[Written]) -> str:
    states = sorted({asked.states.get(one.student, "open") for one in group}, key=ORDER.index)
    points = sorted({asked.points[one.student] for one in group if one.student in asked.points})
    worth = f"{' or '.join(f'{value:g}' for value in points)} of {asked.of:g}" if points else "no points yet"
    names = ", ".join(one.student for one in group)
    told = ", ".join(plots.MEANING[state] for state in states)
    text = group[0].source
    cut = "\n[the rest is left out]" if len(text) > MOST_SHOWN else ""
    return (
        f'<div class="card"><h3>{escaped(names)}</h3><p class="muted">{escaped(worth)}, {escaped(told)}</p>'
        f"<pre>{escaped(text[:MOST_SHOWN])}{cut}</pre></div>"
    )
