"""Cells of a lab without a browser: one namespace, what a cell needs first, and errors in words."""

import pytest

from grader.site.cells import Cells, needed

ABOVE = [
    ("imports", "import math"),
    ("guess", "guess = 2"),
    ("twice", "def twice(x):\n    return factor * x"),
    ("late", "factor = 3"),
]


def test_a_cell_shows_its_prints_and_its_last_value():
    shown = Cells().run("a", "print('<b>')\nx = 1\nx + 1", [])
    assert (
        shown.html == '<pre class="lab-printed">&lt;b&gt;\n</pre><pre class="lab-printed">2</pre>'
        and not shown.failed
    )


def test_a_cell_runs_what_it_needs_of_the_cells_above_it():
    cells = Cells()
    assert "6" in cells.run("use", "twice(guess)", ABOVE).html
    assert set(cells.done) == {"guess", "twice", "late", "use"}  # and not the imports


def test_a_cell_that_changed_runs_again_and_one_that_did_not_stays():
    cells, above = Cells(), [("count", "times = globals().get('times', 0) + 1"), ("guess", "guess = 1")]
    assert "(1, 1)" in cells.run("use", "times, guess", above).html
    above[1] = ("guess", "guess = 5")
    assert "(1, 5)" in cells.run("use", "times, guess", above).html


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("1 +", "line 1: SyntaxError"),
        ("x = 1\nmissing", "use, line 2: missing\nNameError: name &#x27;missing&#x27; is not defined"),
        ("stub()", "NotImplementedError\nThis cell calls a function that you haven&#x27;t written yet."),
        ("import sys\nsys.exit()", "SystemExit"),
    ],
)
def test_an_error_is_told_with_the_cells_own_lines(source, said):
    shown = Cells().run("use", source, [("stub", "def stub():\n    raise NotImplementedError")])
    assert shown.failed and said in shown.html
    assert "cells.py" not in shown.html


def test_an_error_above_is_told_where_it_is():
    shown = Cells().run("use", "x", [("broken", "x = 1 / 0")])
    assert shown.failed and "A cell above" in shown.html and "broken, line 1" in shown.html


def test_long_prints_are_cut():
    shown = Cells().run("use", "print('a' * 300_000)", [])
    assert len(shown.html) < 110_000 and "cut after 100,000 characters" in shown.html


def test_the_source_of_a_cell_is_found_from_its_function():
    """As a check finds it in a notebook."""
    from grader.judge import answer

    cells = Cells()
    cells.run("mine", "def mine():\n    return 1", [])
    assert answer.of_object(cells.namespace["mine"]) == "def mine():\n    return 1"


def test_what_a_cell_needs_is_in_their_order():
    assert [name for name, _ in needed("twice(guess)", ABOVE)] == ["guess", "twice", "late"]
    assert needed("print(1)", ABOVE) == []


def test_a_cell_that_failed_half_way_runs_again():
    cells = Cells()
    assert "1" in cells.run("use", "x", [("one", "x = 1")]).html
    assert cells.run("one", "x = 2\nx / 0", []).failed
    assert ">1<" in cells.run("use", "x", [("one", "x = 1")]).html


def test_cells_that_used_a_changed_cell_run_again_after_it_ran_by_itself():
    cells, above = Cells(), [("one", "x = 1"), ("two", "y = x")]
    assert ">1<" in cells.run("use", "y", above).html
    above[0] = ("one", "x = 2")
    cells.run("one", "x = 2", [])
    assert ">2<" in cells.run("use", "y", above).html


def test_a_recursion_is_told_in_few_lines():
    shown = Cells().run("use", "def f(n):\n    return f(n + 1)\nf(0)", [])
    assert shown.failed and len(shown.html.splitlines()) < 6
    assert "use, line 2: return f(n + 1) (" in shown.html
