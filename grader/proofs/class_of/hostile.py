"""Simulate ten hostile students. Each has a theme, and treats each notebook differently, so that a class meets every
attack."""

import os
from dataclasses import dataclass, field

from grader.proofs.class_of import on_cells, on_files, on_the_host
from grader.proofs.class_of.attack import Attack, Hand, fill_in, make
from grader.proofs.class_of.course import Course
from grader.proofs.class_of.sheet import sheets

THEMES = {
    "cells under other names": on_cells.CELLS,
    "points of their own": on_cells.MARKS,
    "words that act": on_cells.WORDS,
    "no notebook": on_files.TEXTS,
    "too large": on_files.SIZES,
    "links": on_files.LINKS,
    "names": on_files.NAMES,
    "kills": on_the_host.KILLERS,
    "fills and never ends": on_the_host.HOGS,
    "reads and writes elsewhere": on_the_host.THIEVES,
}
ON_EVERY_ANSWER = ("kills", "fills and never ends", "reads and writes elsewhere")
SAMPLE = ("cells under other names", "points of their own", "links", "names", "reads and writes elsewhere")


@dataclass
class HandedIn:
    """One hostile student's attack on one lab, and the required result."""

    student: str
    lab: str
    theme: str
    attacks: list[Attack] = field(default_factory=list)
    points: float = 0.0  # what the answers earn that were left in peace
    refused: bool = False  # the student's folder itself cannot be entered


def hand_in(course: Course, theme: str, lab: str, student: str, victim: str, before: int) -> HandedIn:
    """`before` counts the labs that this theme has handed in, so that each of its attacks has a turn."""
    one = HandedIn(student, lab, theme)
    for number, sheet in enumerate(sheets(course.root, lab)):
        fill_in(sheet)
        asked = sheet.questions()
        targets = list(asked) if theme in ON_EVERY_ANSWER else list(asked)[:1]
        hand = Hand(course, student, victim, sheet, asked, targets[0])
        hand.folder.mkdir(parents=True, exist_ok=True)
        replaced = False
        for count, hand.target in enumerate(targets):
            step = 2 + (len(targets) if len(targets) > 1 else 0)
            turn = step * before + number + count
            attack = _attack(theme, hand.question.id, turn)
            one.attacks.append(attack)
            replaced |= make(attack, hand)
        if not replaced:
            sheet.write(hand.folder)
        one.points += sum(q.points for q in asked.values() if not q.compiles and q.id not in hand.lost)
    return one


def _attack(theme: str, question: str, turn: int) -> Attack:
    made_for_it = on_the_host.exploit(theme, question) if theme in ON_EVERY_ANSWER else None
    return made_for_it or THEMES[theme][turn % len(THEMES[theme])]


def odd_name(place: int, victim: str) -> tuple[str, bool]:
    """Return (name, refused) for names of a student's folder that look like another's or that act."""
    names = (
        (victim.upper(), False),
        (f"{victim[:2]}*", True),
        (victim.replace("u", "\uff55"), False),
        (os.fsdecode(b"u\xff"), True),
        ("=cmd()", True),
    )
    return names[place % len(names)]
