"""A table says the same as HTML and as text."""

import re

import numpy as np
import pytest

from widgets.tables import table

HEADS = ["kernel", "time (µs)", "share"]
ROWS = [["tiled", 1234.56, 0.5], ["a < b", 7.0, 0.123]]


def test_text_is_aligned_and_numbers_are_to_the_right():
    assert repr(table(HEADS, ROWS, ["", ",.1f", ".0%"])) == (
        "kernel  time (µs)  share\n"
        "tiled     1,234.6    50%\n"
        "a < b         7.0    12%"
    )  # fmt: skip


def test_html_has_the_same_cells_in_their_columns():
    html = table(HEADS, ROWS, ["", ",.1f", ".0%"])._repr_html_()
    cells = re.findall(r"<t[hd][^>]*text-align:(\w+)[^>]*>(.*?)</t", html)
    assert [side for side, _ in cells] == ["left", "right", "right"] * 3
    assert [cell for _, cell in cells][3:6] == ["tiled", "1,234.6", "50%"] and "a &lt; b" in html
    assert html.count('scope="col"') == 3


def test_numbers_without_a_format_stay_readable():
    made = table(["n", "x", "y"], [[123456, 0.123456, "as it is"], [np.int64(70_000), np.float64(2.5), True]])
    assert made.rows == (("123,456", "0.1235", "as it is"), ("70,000", "2.5", "True"))
    assert made.right == (True, True, False)


@pytest.mark.parametrize(
    "rows, formats, said",
    [
        ([[1, 2]], None, "a row must have 3 cells .*, got 2 in row 1"),
        (ROWS, [""], "formats must be one for each"),
    ],
)
def test_what_does_not_fit_is_refused(rows, formats, said):
    with pytest.raises(ValueError, match=said):
        table(HEADS, rows, formats)
