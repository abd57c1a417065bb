"""python -m grader check and questions, as one types them."""

import re

import pytest

from grader.__main__ import EXIT_USAGE, main


@pytest.mark.parametrize(
    "answer, said",
    [
        (
            "nothing.py",
            "answer must be a file with the cell's source, or -, got '.*nothing.py'; there is no such file",
        ),
        ("", "answer must be a file .* there is no such file"),
        (
            "lab.ipynb",
            "answer must be a notebook, got '.*lab.ipynb', which can't be read as one",
        ),
        ("other.ipynb", "answer must be a notebook with one cell 'reuse', got '.*other.ipynb', which has 0"),
    ],
)
def test_what_is_no_answer_is_said_and_not_judged(tmp_path, capsys, answer, said):
    (tmp_path / "lab.ipynb").write_text("{}")
    (tmp_path / "other.ipynb").write_text('{"cells": []}')
    assert main(["check", "gemm_tiling.reuse", str(tmp_path / answer)]) == EXIT_USAGE
    assert re.search(said, capsys.readouterr().err)


def test_points_and_bonus_points_stand_in_one_column(capsys):
    assert main(["questions"]) == 0
    rows = capsys.readouterr().out.splitlines()
    kinds = [re.search(r"(points|bonus) +(numpy|kernel|ranks|hand) ", row) for row in rows]
    assert {kind[1] for kind in kinds} == {"points", "bonus"} and len({kind.start(2) for kind in kinds}) == 1


def ended(words: str) -> int:
    try:
        return main(words.split())
    except SystemExit as end:
        return end.code


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("times nonsense", "question must be one of the course's questions, got 'nonsense'"),
        ("necessity tiled_gemm", "question must be a question or a topic, got 'tiled_gemm'"),
        ("collect 01_gemm_tiling nothing.zip", "DOWNLOAD.zip must be a file, got 'nothing.zip'"),
        ("work lab", "unrecognized arguments: lab"),
        ("gates --all", "unrecognized arguments: --all"),
        ("farm", "the following arguments are required"),
    ],
)
def test_a_wrong_usage_is_said_and_nothing_is_done(words, said, capsys):
    assert ended(words) == EXIT_USAGE
    out, err = capsys.readouterr()
    assert said in err and "Errno" not in err and not out


def test_help_does_nothing_else(capsys):
    assert ended("work --help") == 0
    assert "copied" not in capsys.readouterr().out
