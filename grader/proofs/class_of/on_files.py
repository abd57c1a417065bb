"""Attack with something instead of a notebook, such as no file, a large file, a link or a name."""

import json
import os

from grader.proofs.class_of.attack import ALL, NOTHING, ONE, Attack, Hand
from grader.proofs.class_of.sheet import code

NO_PLAIN_FILE = "is a link, and links are not read|is not a plain file"
OTHER_NOTEBOOK = "(is not a notebook of this lab|was not read, because)"


def bytes_instead(data: bytes):
    def do(hand: Hand) -> bool:
        hand.path.write_bytes(data)
        return True

    return do


def a_hundred_megabytes(hand: Hand) -> bool:
    with open(hand.path, "wb") as file:
        file.write(json.dumps(hand.sheet.data).encode())
        file.truncate(100_000_000)
    return True


def a_huge_output(hand: Hand) -> None:
    words = {
        "output_type": "stream",
        "name": "stdout",
        "text": "\u001b[31m<script>alert(1)</script>\n" * 800_000,
    }
    hand.check["outputs"] = [words]


def an_endless_cell(hand: Hand) -> None:
    hand.answer["source"] = "#" * 300_000


def countless_cells(hand: Hand) -> None:
    mark = {"grade_id": "more", "grade": True, "points": 10, "solution": False, "locked": True, "task": False}
    hand.sheet.cells.extend(code("9", f"c{i}", metadata={"nbgrader": mark}) for i in range(6000))


def link_to(target):
    def do(hand: Hand) -> bool:
        hand.path.symlink_to(target(hand))
        (hand.folder / f"{hand.path.stem}.txt").symlink_to("/etc/passwd")
        return True

    return do


def pipe(hand: Hand) -> bool:
    os.mkfifo(hand.path)
    return True


def folder(hand: Hand) -> bool:
    hand.path.mkdir()
    return True


def format_3(hand: Hand) -> None:
    hand.sheet.data = {"worksheets": [hand.sheet.data], "nbformat": 3, "nbformat_minor": 0, "metadata": {}}


def another_language(hand: Hand) -> None:
    kernel = {"name": "bash", "display_name": "Bash", "language": "bash"}
    hand.sheet.data["metadata"] = {"kernelspec": kernel, "language_info": {"name": "bash"}}


def in_capitals_too(hand: Hand) -> None:
    """Add the same name in another case, with other answers, and copies as Jupyter makes them."""
    for name in (hand.sheet.name.upper(), hand.sheet.name.title(), "..%2f..%2f" + hand.sheet.name):
        (hand.folder / name).write_text(json.dumps({"cells": [], "nbformat": 4}))


def a_look_alike(hand: Hand) -> bool:
    """Its name has a letter of another alphabet."""
    hand.sheet.name = hand.sheet.name.replace("e", "\u0435", 1)
    hand.sheet.write(hand.folder)
    return True


def strange_names(hand: Hand) -> None:
    names = (
        b"\xff.ipynb",
        b"a\nb.ipynb",
        b"..ipynb",
        b"\x1b]0;owned\x07.ipynb",
        "\u202egnp.ipynb".encode(),
        b"*.ipynb",
        b"-rf.txt",
    )
    for name in names:
        with open(os.path.join(os.fsencode(hand.folder), name), "wb") as file:
            file.write(b"{}")
    for number in range(300):
        (hand.folder / f"{number}.txt").write_text("x")


SIZES = (
    Attack("a notebook of 100 MB", a_hundred_megabytes, "is 100.0 MB, and at most 2 MB are read", ALL),
    Attack("an output of 30 MB with a script in it", a_huge_output, r"is \d\d\.\d MB, and at most", ALL),
    Attack("an answer of 300 kB", an_endless_cell, "longer than any cell may be", ONE),
    Attack("6000 cells more that ask for points", countless_cells, "6000 cells .* ask to be graded", NOTHING),
)
LINKS = (
    Attack("a link to another's notebook", link_to(lambda hand: hand.stolen), NO_PLAIN_FILE, ALL),
    Attack("a link to the system's users", link_to(lambda hand: "/etc/passwd"), NO_PLAIN_FILE, ALL),
    Attack(
        "a link to the solution",
        link_to(lambda hand: hand.course.root / "solutions" / hand.sheet.lab / hand.sheet.name),
        NO_PLAIN_FILE,
        ALL,
    ),
    Attack("a pipe without a writer", pipe, NO_PLAIN_FILE, ALL),
    Attack("a folder", folder, NO_PLAIN_FILE, ALL),
    Attack("a link that leads nowhere", link_to(lambda hand: "/nowhere/at/all"), NO_PLAIN_FILE, ALL),
)
TEXTS = (
    Attack(
        "text that is no JSON", bytes_instead(b"import os\nos.system('ls')\n"), r"no JSON \(line 1\)", ALL
    ),
    Attack("JSON nested half a million deep", bytes_instead(b"[" * 500_000), "is nested too deeply", ALL),
    Attack("bytes that are no UTF-8", bytes_instead(b'{"cells": ["\xff"]}'), "is not text in UTF-8", ALL),
    Attack("a notebook of another language", another_language, "is a notebook of bash"),
    Attack("a notebook of format 3", format_3, "no list of cells", ALL),
    Attack(
        "cells nested 200 000 deep",
        bytes_instead(b'{"cells": [' + b'{"a":' * 200_000 + b"1" + b"}" * 200_000 + b"]}"),
        "is nested too deeply",
        ALL,
    ),
)
NAMES = (
    Attack("the same name in other cases too", in_capitals_too, OTHER_NOTEBOOK),
    Attack(
        "a name with a letter of another alphabet", a_look_alike, f"was not handed in.*{OTHER_NOTEBOOK}", ALL
    ),
    Attack("names that steer terminals and patterns, 300 files", strange_names, OTHER_NOTEBOOK),
)
