"""A learner's progress from what the grader left, and nothing yet where it left nothing."""

import json
import re

import pytest

from widgets.progress import ROOT, labs, progress

CHECKS = {"reuse": 2, "walk": 3}


@pytest.fixture
def course(tmp_path):
    def cell(source, **graded):
        return {"cell_type": "code", "source": [source], "metadata": {"nbgrader": graded} if graded else {}}

    cells = [cell("# Lab 01, concepts: count")]
    for name, points in CHECKS.items():
        cells.append(cell(f"def {name}(): ...", grade=False, solution=True))
        cells.append(cell(f'check("gemm_tiling.{name}", {name})', grade=True, points=points))
    cells.append(cell("my own words", grade=True, solution=True, points=4))
    place = tmp_path / "labs/01_gemm_tiling"
    place.mkdir(parents=True)
    (place / "concepts.ipynb").write_text(json.dumps({"cells": cells}))
    return tmp_path


def test_nothing_yet(course):
    said = progress(lambda name: None, course)
    assert str(said) == "Lab 01, concepts: count: not started, 2 checks"
    assert (
        "haven't started a lab" in said._repr_html_()
        and "work/01_gemm_tiling/concepts.ipynb" in said._repr_html_()
    )


def test_each_question_counts_by_its_record(course):
    records = {
        "gemm_tiling.reuse": {"verdict": "PASS", "points": 2, "of": 2},
        "gemm_tiling.walk": {"verdict": "FAIL", "points": 1, "of": 3},
    }
    said = progress(records.get, course)
    assert str(said) == "Lab 01, concepts: count: 1 of 2 checks passed, 3 of 5 points"
    html = said._repr_html_()
    assert "still open: walk" in html and 'max="2" value="1"' in html and "haven't started a lab" not in html
    records["gemm_tiling.walk"]["verdict"], records["gemm_tiling.walk"]["points"] = "PASS", 3
    assert "Every check has passed" in progress(records.get, course)._repr_html_()


def test_a_bonus_comes_on_top(course):
    place = course / "labs/01_gemm_tiling/concepts.ipynb"
    place.write_text(place.read_text().replace('"points": 3', '"points": 0'))
    said = progress(lambda name: {"verdict": "PASS", "points": 6, "of": 6}, course)
    assert str(said) == "Lab 01, concepts: count: 2 of 2 checks passed, 2 of 2 points and 6 bonus points"


@pytest.mark.parametrize(
    "record", [{}, {"verdict": None}, {"outcome": "PASS"}, {"verdict": "PASS", "points": "x"}, 7]
)
def test_a_record_that_says_nothing_known_counts_as_none(course, record):
    (lab,) = labs(course, lambda name: record)
    assert not lab.started and lab.passed == 0


def test_a_disk_that_refuses_is_no_end(course):
    def last(name):
        raise OSError("no such disk")

    assert not labs(course, last)[0].started


def test_every_check_of_the_course_is_found():
    found = [one.name for lab in labs(ROOT, lambda name: None) for one in lab.questions]
    written = re.findall(
        r'check\(\\"([\w.]+)\\"',
        "".join(p.read_text(encoding="utf-8") for p in (ROOT / "labs").glob("*/*.ipynb")),
    )
    assert sorted(found) == sorted(written) and len(found) == len(set(found)) > 20
