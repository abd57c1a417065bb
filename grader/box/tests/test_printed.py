"""What is left out of an answer's prints is counted, wherever it is cut."""

import pytest

from grader.box.serve.printed import Printed, first_lines, parted, shortened


def printed(*writes: str) -> str:
    kept = Printed()
    for words in writes:
        assert kept.write(words) == len(words)
    return kept.text()


def numbered(count: int) -> str:
    return "".join(f"line {number}\n" for number in range(count))


def test_what_fits_stays_as_it_is():
    assert printed("one\n", "two") == "one\ntwo" and shortened("one\ntwo", 100) == "one\ntwo"
    assert parted("one\ntwo") == (["one", "two"], 0) and printed() == shortened("", 9) == ""


@pytest.mark.parametrize("size", [1, 7, 100, 19_999, 10**6])
def test_every_line_is_shown_or_counted_however_it_was_written(size):
    whole = numbered(5000)
    lines, left_out = parted(printed(*(whole[at : at + size] for at in range(0, len(whole), size))))
    assert len(lines) + left_out == 5000 and lines == whole.splitlines()[: len(lines)] and left_out > 2000


@pytest.mark.parametrize("most", [19_999, 20_000, 20_001])
def test_a_line_that_ends_at_the_limit(most):
    whole = "x" * (most - 2) + "\n" + "y\nz\n"
    lines, left_out = parted(printed(whole))
    assert len(lines) + left_out == 3 and lines == whole.splitlines()[: len(lines)]


def test_a_line_without_an_end_is_cut():
    assert printed("x" * 30_000) == "x" * 20_000 + "…"
    assert printed("x" * 30_000, "x\n", "y\n") == "x" * 20_000 + "…\n… and 1 more line"
    assert shortened("x" * 30, 10) == "x" * 10 + "…"


def test_cuts_add_up():
    text = printed(numbered(5000))
    text = shortened(text, 4000, left_out=37)
    assert shortened(text, 4000) == text, "once more changes nothing"
    few = first_lines(text, 12)
    assert few.splitlines()[11:] == ["line 11", "… and 5,025 more lines"]
    assert shortened("a\nb", 100, left_out=1) == "a\nb\n… and 1 more line"
