"""Describe one hostile submission of one notebook by its attack, the required message, and the points it may cost."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from grader.proofs.class_of.course import Course
from grader.proofs.class_of.sheet import Sheet
from grader.proofs.right import right

NOTHING, ONE, ALL = "nothing", "one answer", "every answer"


@dataclass
class Hand:
    """Holds the tools of an attack: its own copy, whose numpy answers are right, and its target."""

    course: Course
    student: str
    victim: str
    sheet: Sheet
    asked: dict  # answer -> question, as the notebook was before
    target: str  # the answer that the attack is made on
    lost: set[str] = field(default_factory=set)  # questions that earn nothing

    @property
    def folder(self) -> Path:
        return self.course.submitted(self.student, self.sheet.lab)

    @property
    def path(self) -> Path:
        return self.folder / self.sheet.name

    @property
    def stolen(self) -> Path:
        """The victim's notebook of the same name."""
        return self.course.submitted(self.victim, self.sheet.lab) / self.sheet.name

    @property
    def answer(self) -> dict:
        return self.sheet.cell(self.target)

    @property
    def check(self) -> dict:
        return self.sheet.cell(f"check_{self.target}")

    @property
    def question(self):
        return self.asked[self.target]


@dataclass(frozen=True)
class Attack:
    """`do` changes the sheet, or returns True once it has put something else where the notebook would be."""

    what: str
    do: Callable[[Hand], bool | None]
    told: str  # a pattern of the sentence that must be said
    costs: str = NOTHING


def fill_in(sheet: Sheet) -> None:
    """Fill in right answers to the quick questions, to show an attack's cost. Kernels stay untouched."""
    for name, question in sheet.questions().items():
        if not question.compiles:
            sheet.cell(name)["source"] = right(question.id)


def make(attack: Attack, hand: Hand) -> bool:
    """Make the attack. Return whether another file has replaced the notebook."""
    lost = {NOTHING: [], ONE: [hand.question], ALL: hand.asked.values()}[attack.costs]
    hand.lost |= {question.id for question in lost}
    return bool(attack.do(hand))
