"""The pages that people read: whole by themselves, and honest about what is still open."""

import re
import shutil

import nbformat
import pytest
from traitlets.config import Config

from grader.classroom import gradebooks, pages
from grader.classroom.points import Points
from grader.classroom.tests.conftest import LAB, RIGHT, grade_by_hand

TILE = "data:image/svg+xml;base64,PHN2"
OWN = {"cell_type": "code", "id": "mine", "metadata": {}, "source": "6 * 7", "execution_count": 1}
OWN |= {"outputs": [{"output_type": "stream", "name": "stdout", "text": "42 of mine"}]}


def with_an_own_cell(notebook):
    return notebook | {"cells": [*notebook["cells"], OWN]}


def formgraded(course, student: str) -> str:
    """A submission's page as formgrader's server makes it, from the course's own configuration."""
    from nbconvert.exporters import HTMLExporter
    from nbgrader.server_extensions.formgrader import handlers

    config = Config(gradebooks.settings(course.root, LAB, student))
    config.HTMLExporter.template_name = "formgrade"
    config.HTMLExporter.extra_template_basedirs = [handlers.template_path]
    told = {
        "assignment_id": LAB,
        "notebook_id": "concepts",
        "base_url": "",
        "index": 0,
        "total": 1,
        "notebook_path": "",
    }
    told |= {"submission_id": "1", "student": student, "last_name": "", "first_name": ""}
    return HTMLExporter(config=config).from_filename(
        f"{course.root}/autograded/{student}/{LAB}/concepts.ipynb", told
    )[0]


def test_both_pages_hold_their_pictures_tables_with_room_and_what_a_student_added(course):
    course.hand_in("ada", RIGHT, with_an_own_cell)
    course.grade()
    feedback = (course.pages("ada") / "concepts.html").read_text()
    for page in (feedback, formgraded(course, "ada")):
        assert re.findall(r'<img[^>]*src="([^"]{30})', page) == [TILE], "no picture is asked of a server"
        assert re.search('<img[^>]*style="border:0"', page), "formgrader's style sheet frames others in red"
        assert pages.TABLE in page and "<td>M K</td>" in page
        assert "42 of mine" in page and "outside the answers" in page
    notebook = nbformat.read(course.root / f"autograded/ada/{LAB}/concepts.ipynb", as_version=4)
    assert "![A tile](../../course/pictures/tile.svg)" in "".join(cell.source for cell in notebook.cells)
    assert "<h4>concepts: 5 of 10, not final: 2 answers wait for a person</h4>" in feedback
    assert "Score:" not in feedback and "(3 of 3)" in feedback


def test_feedback_follows_every_change_of_a_grade(course):
    for student in ("ada", "bob"):
        course.hand_in(student, RIGHT)
    course.grade()
    pages_of = {student: course.pages(student) / "concepts.html" for student in ("ada", "bob")}
    before = pages_of["bob"].stat().st_mtime_ns
    grade_by_hand(course, "ada", "why", 2.5)
    course.pages("ada")  # nbgrader's own command, without --force
    assert "concepts: 7.5 of 10, not final: 1 answer waits for a person" in pages_of["ada"].read_text()

    grade_by_hand(course, "ada", "draw", 2)
    said = []
    course.grade(say=said.append)
    assert "concepts: 9.5 of 10, final" in pages_of["ada"].read_text()
    assert "feedback written again, since grades changed: ada" in said
    assert pages_of["bob"].stat().st_mtime_ns == before
    shutil.rmtree(course.root / "feedback/bob")
    grade_by_hand(course, "bob", "why", 1)
    course.grade()
    assert not (course.root / "feedback/bob").exists(), "when feedback begins is the instructor's choice"


def test_points_have_one_form():
    assert str(Points(43, 38, 6)) == "43 of 38, 6 of them bonus"
    assert str(Points(38, 38, 0, 3.8, 64_800)) == "34.2 of 38, 3.8 taken off for 18 h late"
    assert str(Points(15, 38, late_s=64_800)) == "15 of 38, 18 h late"
    assert pages.said(1) == ", not final: 1 answer waits for a person"


@pytest.mark.parametrize(
    "link",
    ["../../gradebook.svg", "/etc/hostname", "../../course/none.svg", "../../course/a.txt", "http://x/y.svg"],
)
def test_a_page_holds_no_picture_but_the_courses(tmp_path, link):
    (tmp_path / "course").mkdir()
    (tmp_path / "gradebook.svg").write_text("secret")
    (tmp_path / "course/a.txt").write_text("text")
    html = f'<img alt="x" src="{link}">'
    assert pages.with_pictures(html, tmp_path, LAB) == html
