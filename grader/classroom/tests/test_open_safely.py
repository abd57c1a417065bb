"""What may be handed in, and what becomes of it: never more than one student's trouble, and always said."""

import json
import os

import nbformat
import pytest

from grader.classroom import leftovers, open_safely, set_aside, submission, transplant
from grader.classroom.exporter import fill
from grader.classroom.tests.conftest import LAB, RIGHT, WRONG, book
from grader.judge import answer


def filled(course, path):
    """(name -> source of the notebook that would be judged, what is said)."""
    notebook, said = fill(nbformat.from_dict(course.lab), path)
    nbformat.validate(notebook)
    return {cell["id"]: cell["source"] for cell in notebook["cells"]}, "\n".join(said)


def cell(notebook, name):
    return next(c for c in notebook["cells"] if c["id"] == name)


def again(name, source):
    """The cell once more, as copy and paste makes it: the same mark, another id."""

    def change(notebook):
        copied = json.loads(json.dumps(cell(notebook, name))) | {"id": "pasted", "source": source}
        return notebook | {"cells": [*notebook["cells"], copied]}

    return change


def without(name):
    return lambda nb: nb | {"cells": [c for c in nb["cells"] if c["id"] != name]}


def with_cell(name, **changes):
    def change(notebook):
        cell(notebook, name).update(changes)
        return notebook

    return change


def with_mark(name, **changes):
    def change(notebook):
        cell(notebook, name)["metadata"]["nbgrader"] |= changes
        return notebook

    return change


def first(*cells):
    return lambda nb: nb | {"cells": [*cells, *nb["cells"]]}


PATCH = {
    "cell_type": "code",
    "id": "patch",
    "metadata": {},
    "source": "import grader; grader.check = None",
    "outputs": [],
    "execution_count": 1,
}
FORGED = {
    "output_type": "execute_result",
    "data": {"text/plain": "1000"},
    "metadata": {},
    "execution_count": 1,
}
STUB, MINE = "raise NotImplementedError", "2 * bm * bn"

# name: (what is done to a right notebook, what the answer `reuse` is then, what is said)
CHANGED = {
    "nothing": (lambda nb: nb, MINE, ""),
    "a stranger's cell before all": (first(PATCH), MINE, ""),
    "a second answer": (again("reuse", "def reuse(bm, bn):\n    return 7\n"), "return 7", "is there 2 times"),
    "a second, untouched answer": (again("reuse", "def reuse(bm, bn):\n    # YOUR CODE HERE\n    raise NotImplementedError()"), MINE, "is there 2 times"),
    "a missing answer": (without("reuse"), STUB, "`reuse` is not in what was handed in"),
    "a check edited": (with_cell("check_reuse", source="1000", outputs=[FORGED]), MINE, "`check_reuse` was changed"),
    "a check with spaces after it": (with_cell("check_reuse", source='check("gemm_tiling.reuse", reuse)  \n'), MINE, ""),
    "a check moved into another editor's lines": (with_cell("check_reuse", source=['check("gemm_tiling.reuse", ', "reuse)"]), MINE, ""),
    "a check deleted": (without("check_reuse"), MINE, ""),
    "points changed": (with_mark("check_reuse", points=99), MINE, "`check_reuse` declares other points than the course does"),
    "points that are no number": (with_mark("check_reuse", points=float("nan")), MINE, "declares other points than"),
    "points below nothing": (with_mark("check_reuse", points=-5), MINE, "declares other points than"),
    "points as another number": (with_mark("check_reuse", points=2.0), MINE, ""),
    "a graded cell of one's own": (first(PATCH | {"metadata": {"nbgrader": {"grade_id": "more", "grade": True, "points": 9}}}), MINE, "1 cell that the course does not have asks to be graded"),
    "a mark without any claim": (first(PATCH | {"metadata": {"nbgrader": {"grade_id": "more", "grade": False, "locked": True}}}), MINE, ""),
    "a check made an answer": (with_mark("check_reuse", solution=True, grade=False, locked=False), MINE, "declares other grade and solution and locked than"),
    "an answer made a check": (with_mark("reuse", grade=True, solution=False, points=99), MINE, "`reuse` declares"),
    "an answer as markdown": (with_cell("reuse", cell_type="markdown"), MINE, "is a markdown cell now"),
    "an answer as raw": (with_cell("reuse", cell_type="raw"), MINE, "is a markdown cell now"),
    "marks lost, ids kept": (lambda nb: nb | {"cells": [c | {"metadata": {}} for c in nb["cells"]]}, MINE, ""),
    "ids lost, marks kept": (lambda nb: nb | {"cells": [{k: v for k, v in c.items() if k != "id"} for c in nb["cells"]]}, MINE, ""),
    "another kernel": (lambda nb: nb | {"metadata": {"kernelspec": {"name": "bash", "display_name": "x"}}}, MINE, ""),
    "another language": (lambda nb: nb | {"metadata": {"language_info": {"name": "bash\x1b[2J"}}}, MINE, "a notebook of bash\\x1b[2J, not of Python"),
    "languages of another kind": (lambda nb: nb | {"metadata": {"language_info": 3, "kernelspec": {"language": [1]}}}, MINE, ""),
    "lines as a list": (with_cell("reuse", source=["def reuse(bm, bn):\n", "    return 2 * bm * bn"]), MINE, ""),
    "a lone surrogate": (with_cell("reuse", source="x = '\ud800'"), "x = '?'", ""),
    "a NUL": (with_cell("reuse", source="x = '\0'"), "x = '\0'", ""),
    "an endless cell": (with_cell("reuse", source="#" * 300_000), STUB, "longer than any cell may be"),
    "a source that is a number": (with_cell("reuse", source=5), STUB, "`reuse` is not in what"),
    "marks of another kind": (lambda nb: nb | {"cells": [c | {"metadata": [1]} for c in nb["cells"]]}, MINE, ""),
    "a mark that is a number": (lambda nb: nb | {"cells": [c | {"metadata": {"nbgrader": 3}} for c in nb["cells"]]}, MINE, ""),
    "cells that are numbers": (lambda nb: nb | {"cells": [1, None, "x", [], *nb["cells"]]}, MINE, ""),
    "a hundred thousand cells": (lambda nb: nb | {"cells": nb["cells"] + [{}] * 100_000}, MINE, ""),
    "no cells": (lambda nb: nb | {"cells": []}, STUB, "`reuse` is not in what"),
    "format 3": (lambda nb: {"worksheets": [nb], "nbformat": 3}, STUB, "no list of cells"),
    "a list": (lambda nb: [nb], STUB, "no list of cells"),
}  # fmt: skip


@pytest.mark.parametrize("name", CHANGED)
def test_a_changed_notebook(course, name):
    change, answer, words = CHANGED[name]
    cells, said = filled(course, course.hand_in("eve", RIGHT, change))
    assert answer in cells["reuse"]
    assert words in said and bool(words) == bool(said)
    assert cells["check_reuse"] == 'check("gemm_tiling.reuse", reuse)'
    assert "patch" not in cells and (transplant.SAID in cells) == bool(said)


BYTES = {
    "nested JSON": (b"[" * 500_000, "is nested too deeply"),
    "nested cells": (
        b'{"cells": [' + b'{"a":' * 200_000 + b"1" + b"}" * 200_000 + b"]}",
        "is nested too deeply",
    ),
    "no JSON": (b"import os\n", "no JSON (line 1)"),
    "not UTF-8": (b'{"cells": ["\xff"]}', "is not text in UTF-8"),
    "empty": (b"", "no JSON"),
    "a huge number": (b'{"cells": ' + b"9" * 1_000_000 + b"}", "is not a notebook"),
    "3 MB": (
        b'{"cells": [' + b" " * 3_000_000 + b"]}",
        "is 3.0 MB, and at most 2 MB are read: clear the outputs",
    ),
}


@pytest.mark.parametrize("name", BYTES)
def test_what_is_no_notebook_is_judged_as_not_started_and_said(course, name):
    data, words = BYTES[name]
    path = course.place("eve")
    path.write_bytes(data)
    cells, said = filled(course, path)
    assert words in said and STUB in cells["reuse"] and "concepts.ipynb" in cells[transplant.SAID]


def link(path, course):
    path.symlink_to(course.hand_in("ada", RIGHT))


def dangling(path, course):
    path.symlink_to("/nowhere")


def pipe(path, course):
    os.mkfifo(path)


def huge(path, course):
    with open(path, "wb") as file:
        file.truncate(100_000_000)


def folder(path, course):
    path.mkdir()


def linked_folder(path, course):
    course.hand_in("ada", RIGHT)
    path.parent.rmdir()
    path.parent.symlink_to(course.root / "submitted/ada" / LAB)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (link, "is a link, and links are not read. Ask for the file itself"),
        (dangling, "is a link, and links are not read. Ask for the file itself"),
        (pipe, "is not a plain file"),
        (huge, "is 100.0 MB"),
        (folder, "is not a plain file"),
        (linked_folder, "is a link, and links are not read. Ask for the file itself"),
    ],
)
def test_only_plain_files_are_read(course, make, words):
    path = course.place("eve")
    make(path, course)
    cells, said = filled(course, path)
    assert words in said and STUB in cells["reuse"]


def own(source, kind="code", **more):
    code = {"outputs": [], "execution_count": 3} if kind == "code" else {}
    return {"cell_type": kind, "id": "mine", "metadata": {}, "source": source, **code, **more}


def below(name, *cells):
    def change(notebook):
        at = notebook["cells"].index(cell(notebook, name))
        notebook["cells"][at + 1 : at + 1] = cells
        return notebook

    return change


def printed(words):
    return {"output_type": "stream", "name": "stdout", "text": words}


def shown_below(notebook, name, count):
    ids = [c["id"] for c in notebook["cells"]]
    return [c["source"] for c in notebook["cells"][ids.index(name) + 1 : ids.index(name) + 1 + count]]


def test_cells_of_a_students_own_are_shown_where_they_stood_with_what_they_printed(course):
    mine = own("plot(walk)", outputs=[FORGED, printed("<b>1 & 2</b>\x1b[2J\n```\n# big")])
    for name in ("draw", "tile_loads"):  # below a task, and below an answer
        path = course.hand_in("eve", RIGHT, below(name, mine, own("I <i>see</i>", "markdown")))
        notebook, said = fill(nbformat.from_dict(course.lab), path)
        assert said == []
        caption, source, result, words = shown_below(notebook, name, 4)
        assert "outside the answers" in caption and (source, words) == ("plot(walk)", "I < i>see< /i>")
        assert result.splitlines()[2:] == ["    1000", "    <b>1 & 2</b>\\x1b[2J", "    ```", "    # big"]
        assert all(
            not c.get("outputs") and "nbgrader" not in c["metadata"]
            for c in notebook["cells"]
            if "own" in c["id"]
        )


def test_predictions_and_numbers_of_the_labs_own_cells_come_along(course):
    """What a reflection is graded with: what was guessed, and the numbers that came."""
    guess = next(c["id"] for c in course.lab["cells"] if c["source"] == "my_guess = None")
    number = next(c["id"] for c in course.lab["cells"] if c["source"] == "reuse(64, 64)")

    def change(notebook):
        cell(notebook, guess)["source"] = "my_guess = 42"
        cell(notebook, number)["outputs"] = [
            FORGED | {"data": {"text/plain": "64.0", "text/html": "<script>1</script>"}}
        ]
        return notebook

    notebook, said = fill(nbformat.from_dict(course.lab), course.hand_in("eve", RIGHT, change))
    sources = {c["id"]: c["source"] for c in notebook["cells"]}
    assert sources[guess] == "my_guess = 42" and not said
    assert shown_below(notebook, number, 1) == [f"{transplant.PRINTED}\n\n    64.0"]
    assert "script" not in json.dumps(notebook)
    assert len(notebook["cells"]) == len(course.lab["cells"]) + 1, "what was not touched is there once"


def test_countless_own_cells_are_counted(course):
    path = course.hand_in("eve", RIGHT, below("draw", *(own(f"x = {n}") for n in range(300))))
    cells, said = filled(course, path)
    assert "200 more cells of its own are not shown" in said
    assert sum(name.startswith("own_") for name in cells) == 101


def stripped(notebook):
    """As an editor saves it that knows neither ids nor metadata."""
    cells = [
        {k: v for k, v in c.items() if k not in ("id", "metadata")} | {"metadata": {}}
        for c in notebook["cells"]
    ]
    return notebook | {"cells": cells, "nbformat_minor": 4}


def test_without_names_answers_are_found_by_their_functions_and_their_place(course):
    guess = next(c["id"] for c in course.lab["cells"] if c["source"] == "my_guess = None")

    def guessed(notebook):
        cell(notebook, guess)["source"] = "my_guess = 42"
        return stripped(notebook)

    cells, said = filled(course, course.hand_in("eve", RIGHT, guessed))
    assert cells[guess] == "my_guess = 42"
    assert all(cells[name].strip() == RIGHT[name].strip() for name in RIGHT)
    assert "`reuse` has lost its name and was found by its function's name" in said
    assert (
        "`why` has lost its name and was found by its place" in said
        and "not in what was handed in" not in said
    )
    assert not any(name.startswith("own_") for name in cells), "the lab's own cells are known by their words"


def test_names_that_an_editor_took_away_are_one_sentence_of_a_row():
    lost = [f"a.ipynb: The cell `{one}` has lost its name and was found by its place." for one in "xyz"]
    assert submission.together([*lost[:2], "b.ipynb was not handed in."]) == [
        *lost[:2],
        "b.ipynb was not handed in.",
    ]
    assert submission.together([*lost, "b.ipynb was not handed in."]) == [
        "b.ipynb was not handed in.",
        "a.ipynb: 3 cells have lost their names and were found by function or position: x, y, z.",
    ]


def test_an_answer_in_a_new_cell_is_found_by_its_function(course):
    def moved(notebook):
        return without("reuse")(notebook) | {
            "cells": [*without("reuse")(notebook)["cells"], own(RIGHT["reuse"])]
        }

    cells, said = filled(course, course.hand_in("eve", RIGHT, moved))
    assert MINE in cells["reuse"] and "found by its function's name" in said
    no_python = "def reuse(bm, bn):\n    return (\n"
    cells, _ = filled(course, course.hand_in("eve", {**RIGHT, "reuse": no_python}, stripped))
    assert cells["reuse"] == no_python, "an answer that does not parse fails as itself"


def test_a_notebook_that_cannot_be_read_waits_for_a_person(course):
    course.place("fay").write_bytes(b"import os\n")
    row = course.grade()["fay"]
    held = book(course, "fay")
    assert held["check_reuse"].needs_manual_grade and held["check_tile_loads"].needs_manual_grade
    assert row.waits == 4 and not row.final and row.points == 0 and row.unread
    page = (course.root / f"autograded/fay/{LAB}/concepts.ipynb").read_text()
    assert "no JSON (line 1)" in page and "grader's own trouble" not in page


def test_the_readers_own_death_is_our_trouble(course, monkeypatch):
    path = course.hand_in("eve", RIGHT)
    monkeypatch.setattr(open_safely, "READER", path.parent / "no_such_program.py")
    notebook, said = fill(nbformat.from_dict(course.lab), path)
    assert notebook.metadata["not_read"] == said[0].rstrip(".") and "by no fault of its writer" in said[0]


SHOWN = {
    "<script>alert(1)</script>": "< script>alert(1)< /script>",
    "a < b and c<d": "a < b and c< d",
    "[x](javascript:alert(1))": "[x] (javascript:alert(1))",
    "![p](http://x/y.png)": "![p] (http: //x/y.png)",
    "see HTTPS://x.org/y": "see HTTPS: //x.org/y",
    "[x]: javascript:alert(1)": "[x] : javascript:alert(1)",
    "$\\href{javascript:alert(1)}{x}$": "$\\ href{javascript:alert(1)}{x}$",
    "x\u202ey\x00z": "xyz",
    "## A heading, `code` and $x^2$": "## A heading, `code` and $x^2$",
}


@pytest.mark.parametrize("text", SHOWN)
def test_a_strangers_markdown_holds_nothing_that_acts(text):
    assert transplant.plain(text) == SHOWN[text]
    from nbconvert.filters.markdown_mistune import markdown2html_mistune

    html = markdown2html_mistune(SHOWN[text])
    assert not any(words in html for words in ("<script", "<img", 'href="http', 'href="javascript', "\\href"))


def test_odd_files_are_set_aside_before_nbgrader_copies_them(course, tmp_path):
    place = course.hand_in("eve", RIGHT).parent
    (place / "notes.txt").write_text("mine")
    (place / "secret.txt").symlink_to("/etc/hostname")
    os.mkfifo(place / "pipe")
    (place / "deep").mkdir()
    (place / "deep/link").symlink_to("/etc", target_is_directory=True)
    with open(place / "large.bin", "wb") as file:
        file.truncate(3_000_000)
    (place / "timestamp.txt").write_text("99999-99-99 later")
    set_aside.hook(LAB, "eve", [str(place / "concepts.ipynb")])
    left = sorted(p.relative_to(place).as_posix() for p in place.rglob("*"))
    assert left == ["concepts.ipynb", "deep", "notes.txt"]
    (moved,) = (tmp_path / "work/class/set_aside/eve").iterdir()
    assert sorted(p.name for p in moved.rglob("*")) == [
        "deep",
        "large.bin",
        "link",
        "pipe",
        "secret.txt",
        "timestamp.txt",
    ]


def test_a_good_time_stamp_stays_and_a_linked_folder_goes(course):
    place = course.hand_in("eve", RIGHT).parent
    assert set_aside.set_aside(place) == []
    linked = course.root / "submitted/mal" / LAB
    linked.parent.mkdir()
    linked.symlink_to(place)
    assert set_aside.set_aside(linked) == [LAB] and not os.path.lexists(linked) and place.exists()


def test_notebooks_under_other_names_are_named_and_not_read(course):
    place = course.hand_in("eve", RIGHT).parent
    for name in ("Concepts.ipynb", "concepts-Copy1.ipynb", "\x1b[2J.ipynb", "notes.txt"):
        (place / name).write_text("{}")
    row = course.grade()["eve"]
    assert row.points == 5 and not row.trouble
    assert row.said.pop().startswith("\\x1b[2J.ipynb was set aside")
    assert row.said == [
        f"{name} was not read, because concepts.ipynb counts. If it is the newer one, give it that name and run this again."
        for name in ("Concepts.ipynb", "concepts-Copy1.ipynb")
    ] + ["notes.txt was not read. Graders find it next to the notebooks."]


@pytest.mark.parametrize(
    ("name", "words"),
    (
        ("lab01_concepts_ada.ipynb", "(is it meant to be concepts.ipynb?)"),
        ("my_first_kernels.ipynb", "(is it meant to be first_kernels.ipynb?)"),
        ("kernl.ipynb", "(is it meant to be kernel.ipynb?)"),
        ("evil.ipynb", "rename it to concepts.ipynb or first_kernels.ipynb or kernel.ipynb"),
    ),
)
def test_a_notebook_of_another_name_is_told_its_name_or_all_there_are(tmp_path, name, words):
    (tmp_path / name).write_text("{}")
    (said,) = leftovers.in_lab(tmp_path, ["concepts.ipynb", "first_kernels.ipynb", "kernel.ipynb"])
    assert said.startswith(f"{name} is not a notebook of this lab") and words in said
    assert ("meant to be" in said) == ("meant to be" in words)


def test_a_browsers_second_download_is_taken(course):
    place = course.hand_in("eve", RIGHT)
    place.rename(place.with_name("concepts (2).ipynb"))
    place.with_name("concepts (1).ipynb").write_text(json.dumps(course.notebook(WRONG)))
    for _ in range(2):
        row = course.grade()["eve"]
        assert row.points == 5 and row.said[0] == "concepts (2).ipynb was taken for concepts.ipynb."
        assert any(
            "concepts (1).ipynb was not read, because concepts.ipynb counts" in said for said in row.said
        )
    course.hand_in("bob", WRONG).with_name("concepts (1).ipynb").write_text(
        json.dumps(course.notebook(RIGHT))
    )
    assert course.grade()["bob"].points == 2, "the lab's own name counts"


@pytest.mark.parametrize("magic", ("%matplotlib inline", "!ls", "    %time x = 1"))
def test_notebook_magic_in_an_answer_is_named(magic):
    with pytest.raises(
        answer.Refused, match="got the notebook magic '[%!].*which only Jupyter runs"
    ) as refused:
        answer.require_parses(f"x = 1\n{magic}\n" if magic[0] != " " else f"if 1:\n{magic}\n")
    assert refused.value.line == 2
    for broken in ("def f(", "x = = 1", ""):
        try:
            answer.require_parses(broken)
        except answer.Refused as why:
            assert "got a text that is not" in str(why)


def test_who_cannot_be_entered_is_told_why(course, capsys):
    from grader.classroom import command

    for name in ("ada", os.fsdecode(b"u\xff")):
        course.hand_in(name, RIGHT)
    (course.root / "submitted/mal").symlink_to(course.root / "submitted/ada")
    with open(course.place("ada").parent / "data.bin", "wb") as file:
        file.truncate(3_000_000)
    course.place("cy").with_name("Concepts.ipynb").write_text("{}")
    rows = course.grade(only=["mal", "cy", os.fsdecode(b"u\xff")])
    assert "is a link to another folder" in rows["mal"].trouble
    assert (course.place("ada").parent / "data.bin").exists(), "nothing was set aside through the link"
    assert "A letter, digit or underscore comes first" in rows[os.fsdecode(b"u\xff")].trouble
    assert rows["cy"].trouble == "none of the lab's notebooks was handed in"
    assert any("meant to be concepts.ipynb" in said for said in rows["cy"].said)
    print(command.text(command.prepare(course.root, LAB), list(rows.values())))
    assert "u\\xdcff" in capsys.readouterr().out


def test_what_is_set_aside_is_said_once(course):
    place = course.hand_in("eve", RIGHT).parent
    (place / "secret.txt").symlink_to("/etc/hostname")
    with open(os.path.join(os.fsencode(place), b"\xff.ipynb"), "w") as file:
        file.write("{}")
    (place / "a\nb").mkdir()
    row = course.grade()["eve"]
    names = ["a\\nb", "secret.txt", "\\xdcff.ipynb"]
    assert [said.partition(" was")[0] for said in row.said] == names and row.points == 5 and not row.trouble
    again = course.grade()["eve"]
    assert again.said == [] and again.unchanged


def test_an_answer_that_ends_its_judge_is_named(course):
    ends = 'os = __import__("os")\nos.kill(os.getppid(), 9)\n__import__("time").sleep(9)\n' + RIGHT["reuse"]
    course.hand_in("eve", {**RIGHT, "reuse": ends})
    row = course.grade()["eve"]
    assert (
        row.unsettled == ["gemm_tiling.reuse"]
        and "broke off" in row.why["gemm_tiling.reuse"]
        and row.points == 3
    )
