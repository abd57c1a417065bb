"""Answers are found where a learner has them, and one that is missing, unfinished or broken says so."""

import json

import pytest

from grader.capstone import answers
from grader.proofs.right import right

QUESTION = "gemm_tiling.tiled_gemm"


def lab(folder, source: str | None, name: str = "tiled_gemm"):
    """A folder of labs with one notebook, and one answer in it."""
    cell = {"cell_type": "code", "source": source, "metadata": {"nbgrader": {"grade_id": name}}}
    path = folder / "01_gemm_tiling/kernel.ipynb"
    path.parent.mkdir()
    path.write_text(json.dumps({"cells": [] if source is None else [cell]}))
    return folder


def test_an_answer_is_loaded_with_the_name_that_its_question_gives(tmp_path):
    one = answers.found(QUESTION, lab(tmp_path, right(QUESTION)))
    assert one.launch.__name__ == "launch" and not one.why


@pytest.mark.parametrize(
    "source, why",
    [
        (None, "not started in 01_gemm_tiling/kernel.ipynb"),
        ("def launch(p):\n    raise NotImplementedError", "not started in 01_gemm_tiling/kernel.ipynb"),
        ("# mine\ndef launch(p:", "its cell stops: SyntaxError: '(' was never closed in `def launch(p:`"),
        ("import nothing_like_this\ndef launch(p): pass", "its cell stops: ModuleNotFoundError"),
        ("def other(p): pass", "its cell defines no launch"),
        ("launch = 3", "its cell defines no launch"),
    ],
)
def test_an_answer_that_can_t_be_used_says_why(source, why, tmp_path):
    one = answers.found(QUESTION, lab(tmp_path, source))
    assert one.launch is None and one.why.startswith(why), one


def test_no_notebook_and_no_notebook_s_text_are_told_apart(tmp_path):
    assert answers.found(QUESTION, tmp_path).why == "no 01_gemm_tiling/kernel.ipynb"
    (tmp_path / "01_gemm_tiling").mkdir()
    (tmp_path / "01_gemm_tiling/kernel.ipynb").write_text("{")
    assert "is not a notebook" in answers.found(QUESTION, tmp_path).why
