"""What a notebook calls beside `check`: the sentence that ends a lab whose package is missing."""

import sys

import pytest

import grader
from grader.notebook import Stop


def test_a_lab_whose_package_is_missing_ends_in_one_sentence(monkeypatch):
    monkeypatch.setitem(sys.modules, "triton", None)
    with pytest.raises(Stop) as stopped:
        grader.needs("triton")
    lines = stopped.value._render_traceback_()
    assert len(lines) == 1 and lines[0].startswith("This lab needs triton, which is not installed here")


def test_a_package_that_is_there_is_no_reason_to_stop():
    assert grader.needs("numpy") is None
