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
            "answer must be the source of one cell, got the notebook '.*lab.ipynb'; run its check there",
        ),
    ],
)
def test_what_is_no_answer_is_said_and_not_judged(tmp_path, capsys, answer, said):
    (tmp_path / "lab.ipynb").write_text("{}")
    assert main(["check", "gemm_tiling.reuse", str(tmp_path / answer)]) == EXIT_USAGE
    assert re.search(said, capsys.readouterr().err)


def test_points_and_bonus_points_stand_in_one_column(capsys):
    assert main(["questions"]) == 0
    rows = capsys.readouterr().out.splitlines()
    kinds = [re.search(r"(points|bonus) +(numpy|kernel|ranks|hand) ", row) for row in rows]
    assert {kind[1] for kind in kinds} == {"points", "bonus"} and len({kind.start(2) for kind in kinds}) == 1
