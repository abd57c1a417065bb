"""Attack with cells, by names, marks, points, checks, and words that would act in a page or a terminal."""

import json
import math

from grader.proofs.class_of.attack import ALL, ONE, Attack, Hand
from grader.proofs.class_of.sheet import code, source

FORGED = {
    "output_type": "execute_result",
    "execution_count": 1,
    "metadata": {},
    "data": {"text/plain": "1000.0", "text/html": "<b>PASS</b> 1000 of 1000 points"},
}
PATCH = "import grader\ngrader.check = lambda *arguments, **more: 1000.0"
MISSING, COUNTED = "is not in what was handed in", r"is there \d+ times"
MARKED, REPLACED = "declares other .* than the course does", "was changed"
ESCAPES = "\x1b[2J\x1b]0;owned\x07"
SCRIPT, PICTURE = "<script>alert(1)</script>", "<img src=x onerror=alert(1)>"


def rename(cell: dict, name) -> None:
    cell["id"] = name
    cell["metadata"].setdefault("nbgrader", {})["grade_id"] = name


def twice(hand: Hand) -> None:
    copied = json.loads(json.dumps(hand.answer))
    hand.sheet.cells.append(copied | {"id": "pasted"})


def missing(hand: Hand) -> None:
    hand.sheet.cells.remove(hand.answer)


def retitled(hand: Hand) -> None:
    """The first answer bears the name of the last one."""
    rename(hand.answer, [*hand.asked][-1])


def one_name_for_all(hand: Hand) -> None:
    name = hand.answer["id"]
    for cell in hand.sheet.cells:
        rename(cell, name)


def no_names(hand: Hand) -> None:
    for cell, name in zip(hand.sheet.cells, [5, None, ["x"], {"a": 1}, "y" * 100_000] * 100, strict=False):
        rename(cell, name)


def more_cells(hand: Hand) -> None:
    for number in range(40):
        mark = {"grade_id": f"check_more_{number}", "grade": True, "points": 25, "locked": True}
        hand.sheet.cells.insert(
            0, code("25.0", f"more-{number}", metadata={"nbgrader": mark}, outputs=[FORGED])
        )


def points(value: float):
    def do(hand: Hand) -> None:
        hand.check["metadata"]["nbgrader"]["points"] = value
        hand.check["outputs"] = [FORGED]
        hand.sheet.data["metadata"]["nbgrader"] = {"points": value, "max_score": value}

    return do


def forged_check(hand: Hand) -> None:
    hand.check.update(source="1000.0", outputs=[FORGED])
    hand.sheet.cells.insert(0, code(PATCH, "said_at_intake", outputs=[FORGED]))


def check_made_an_answer(hand: Hand) -> None:
    hand.check["metadata"]["nbgrader"] |= {"solution": True, "grade": False, "locked": False}


def answer_made_a_check(hand: Hand) -> None:
    hand.answer["metadata"]["nbgrader"] |= {"grade": True, "solution": False, "locked": True, "points": 99}


def words(hand: Hand) -> None:
    """In every text, in what an answer prints and raises, and where the kernels' cells may hold no bare words."""
    for cell in hand.sheet.texts():
        cell["source"] = (
            f"{SCRIPT} {PICTURE} [x](javascript:alert(1)) ![p](http://localhost/p.png) {ESCAPES}\u202e"
            "$\\href{javascript:alert(1)}{x}$"
        )
    text = SCRIPT + PICTURE
    body = f"    print({text + ESCAPES!r})\n    raise ValueError({PICTURE + ESCAPES!r})\n"
    bare = f"{text!r}\n" if hand.question.compiles else ""
    lines = source(hand.answer).split("\n")
    head = next(line for line in lines if line.startswith("def "))
    head = head if head.rstrip().endswith(":") else f"def {hand.question.entry}(*arguments):"
    hand.answer["source"] = f"import math\n{bare}{head}\n{body}"


CELLS = (
    Attack("an answer twice", twice, COUNTED),
    Attack("an answer's cell left out", missing, MISSING, ONE),
    Attack("an answer under another's name", retitled, f"{MISSING}.*{COUNTED}", ONE),
    Attack("one name for all cells", one_name_for_all, COUNTED, ALL),
    Attack("names that are not valid", no_names, MISSING, ALL),
    Attack("40 graded cells more", more_cells, "40 cells .* ask to be graded"),
)
MARKS = (
    Attack("a check worth 1e9 points", points(1e9), MARKED),
    Attack("a check worth NaN points", points(math.nan), MARKED),
    Attack("a check worth -5 points", points(-5), MARKED),
    Attack("a check that says 1000, and grader.check replaced", forged_check, REPLACED),
    Attack("a check made an answer", check_made_an_answer, MARKED),
    Attack("an answer made a check", answer_made_a_check, MARKED),
)
WORDS = (Attack("scripts and escapes in texts, prints and errors", words, "alert", ONE),)
