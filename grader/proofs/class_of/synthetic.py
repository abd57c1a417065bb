"""Make a large class by arithmetic, with many numpy answers, often handed in twice, and some kernels."""

import random

from grader.proofs.class_of import honest
from grader.proofs.class_of.course import Course
from grader.proofs.class_of.sheet import sheets, source

SEED = 2026
OWN_WORDS = 0.4  # of numpy answers that no other student has handed in exactly so
KERNELS = 0.1  # of students who hand in the kernel notebook
KINDS = ("right", "right", "right", "wrong", "half")


def names(count: int) -> list[str]:
    return [f"u{number:05d}" for number in range(count)]


def hand_in(course: Course, lab: str, students: int, kernels: float = KERNELS) -> None:
    for student in names(students):
        rng = random.Random(f"{SEED} {student}")
        with_kernel = rng.random() < kernels
        for sheet in sheets(course.root, lab):
            asked = sheet.questions()
            if any(question.compiles for question in asked.values()) and not with_kernel:
                continue
            for name, question in asked.items():
                sheet.cell(name)["source"] = _answer(question, source(sheet.cell(name)), student, rng)
            for cell in sheet.texts():
                cell["source"] = f"`{student}` counted and found the sides to add up."
            sheet.write(course.submitted(student, lab))


def _answer(question, stub: str, student: str, rng: random.Random) -> str:
    if rng.random() < 0.05:
        return stub
    text = rng.choice(honest.sources(question, rng.choice(KINDS), True))
    return f"# {student}\n{text}" if not question.compiles and rng.random() < OWN_WORDS else text
