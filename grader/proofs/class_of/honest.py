"""Simulate honest students, whose notebooks have right, wrong, half-done and untouched answers. The students are
always the same."""

import random
from collections.abc import Callable
from functools import cache

from grader.proofs import honest as honest_forms
from grader.proofs import wrong as zoo
from grader.proofs.class_of.course import Course
from grader.proofs.class_of.sheet import Sheet, code, sheets, source
from grader.proofs.mutants import mutants
from grader.proofs.right import edited, right

KINDS = ("right", "right", "right", "wrong", "wrong", "half", "blank")
FEW = 2  # of wrong kernels and of unusual right kernels, which cost seconds of judging each, in both classes


def hand_in(course: Course, student: str, lab: str, few: bool) -> None:
    """Write one student's notebooks of a lab. Now and then one is forgotten."""
    rng = random.Random(f"{student} {lab}")
    copies = sheets(course.root, lab)
    if len(copies) > 1 and rng.random() < 0.08:
        copies.remove(rng.choice(copies))
    for sheet in copies:
        for name, question in sheet.questions().items():
            cell = sheet.cell(name)
            cell["source"] = answer(question, source(cell), student, rng, few)
        for cell in sheet.texts():
            if rng.random() < 0.7:
                cell["source"] = (
                    f"Because of what `{student}` counted: $2 b_m b_n / (b_m + b_n)$ and *no* more."
                )
        for habit in rng.sample(HABITS, rng.randint(0, 4)):
            habit(sheet, rng)
        sheet.write(course.submitted(student, lab))
    if rng.random() < 0.2:
        (course.submitted(student, lab) / "notes.txt").write_text("what I tried\n")


def answer(question, stub: str, student: str, rng: random.Random, few: bool) -> str:
    kind = rng.choice(KINDS)
    if kind == "blank":
        return stub
    if few and question.compiles:
        kind = rng.choice(("wrong", "half"))  # where a right kernel takes ten seconds to judge
    text = rng.choice(sources(question, kind, few))
    # What does not compile is quick to judge, so each student has words of their own in them.
    return f"# {student}\n{text}" if not question.compiles and rng.random() < 0.7 else text


def sources(question, kind: str, few: bool) -> list[str]:
    return pool(question.id, few)[kind]


@cache
def pool(question_id: str, few: bool) -> dict[str, list[str]]:
    from grader import questions

    question = questions.find(question_id)
    best = right(question_id)
    lines = best.splitlines()
    half = ["\n".join(lines[: len(lines) // 2]), "def " + question.entry + "(*arguments):\n    return None\n"]
    return {"right": [best], "half": half, "wrong": []} | (
        _kernels(question, best, few) if question.compiles else _numpy(question, best)
    )


def _kernels(question, best: str, few: bool) -> dict[str, list[str]]:
    rows = list(zoo.table(question).values())[: 1 if few else FEW]
    forms = [] if few else list(honest_forms.forms(question))[1 : 1 + FEW // 2]
    wrong = [edited(best, row.edits) for row in rows] or [mutants(best)[0].source]
    return {"right": [best, *(honest_forms.source(question, name) for name in forms)], "wrong": wrong}


def _numpy(question, best: str) -> dict[str, list[str]]:
    made = [zoo.source(question, row) for row in zoo.table(question).values()]
    return {"wrong": [*made, *(mutant.source for mutant in mutants(best)[:3])]}


def run_out_of_order(sheet: Sheet, rng: random.Random) -> None:
    """Run cells out of order and save outputs that nbgrader would take for points and pages for scripts."""
    cells = [cell for cell in sheet.cells if cell["cell_type"] == "code"]
    for count in rng.sample(range(1, 90), len(cells)):
        cell = rng.choice(cells)
        cell["execution_count"] = count
        cell["outputs"] = [
            {"output_type": "stream", "name": "stderr", "text": ["UserWarning: \u001b[31mslow\u001b[0m\n"]},
            {
                "output_type": "execute_result",
                "execution_count": count,
                "metadata": {},
                "data": {"text/plain": "12.0", "text/html": "<table><tr><td>1</td></tr></table>"},
            },
        ]


def own_cells(sheet: Sheet, rng: random.Random) -> None:
    for number in range(rng.randint(1, 5)):
        text = rng.choice(
            ["import numpy as np\nnp.arange(9)", "%time 1 + 1", "# a <b>note</b>", "", "print('x' * 100)"]
        )
        sheet.cells.insert(rng.randrange(len(sheet.cells)), code(text, f"own-{number}"))


def notes(sheet: Sheet, rng: random.Random) -> None:
    place = rng.randrange(len(sheet.cells))
    sheet.cells.insert(
        place, {"cell_type": "markdown", "id": "a-note", "metadata": {}, "source": "My note: $x<y$"}
    )


def old_format(sheet: Sheet, rng: random.Random) -> None:
    """Convert to format 4.4 or older, without ids of cells. nbgrader's own marks stay."""
    sheet.data["nbformat_minor"] = rng.choice([0, 2, 4])
    for cell in sheet.cells:
        cell.pop("id", None)


def lines_as_list(sheet: Sheet, rng: random.Random) -> None:
    for cell in sheet.cells:
        cell["source"] = source(cell).splitlines(keepends=True)


def another_editor(sheet: Sheet, rng: random.Random) -> None:
    """Windows line ends, an environment of another name, marks of the editor's."""
    sheet.data["metadata"] |= {
        "kernelspec": {"name": "llm", "display_name": "llm (3.12)", "language": "python"},
        "vscode": {"x": 1},
    }
    for cell in sheet.cells:
        cell["source"] = source(cell).replace("\n", "\r\n")
        cell["metadata"] |= {"collapsed": False, "trusted": True}


def moved(sheet: Sheet, rng: random.Random) -> None:
    last = sheet.cells.pop()
    sheet.cells.insert(rng.randrange(len(sheet.cells)), last)


HABITS: tuple[Callable, ...] = (
    run_out_of_order,
    own_cells,
    notes,
    lines_as_list,
    another_editor,
    moved,
    old_format,
)
