"""python -m grader check and questions, as one types them."""

import json
import re
import runpy
import sys

import pytest

from grader import questions, running
from grader.__main__ import EXIT_USAGE, main
from grader.tools import hint


@pytest.mark.parametrize(
    "answer, said",
    [
        (
            "nothing.py",
            "answer must be a file with the cell's source, or -, got '.*nothing.py', and there is no such file",
        ),
        ("", "answer must be a file .* there is no such file"),
        (
            "lab.ipynb",
            "answer must be a notebook, got '.*lab.ipynb', which can't be read as a notebook",
        ),
        ("other.ipynb", "answer must be a notebook with one cell 'reuse', got '.*other.ipynb', which has 0"),
    ],
)
def test_what_is_no_answer_is_said_and_not_judged(tmp_path, capsys, answer, said):
    (tmp_path / "lab.ipynb").write_text("{}")
    (tmp_path / "other.ipynb").write_text('{"cells": []}')
    assert main(["check", "gemm_tiling.reuse", str(tmp_path / answer)]) == EXIT_USAGE
    assert re.search(said, capsys.readouterr().err)


def test_ctrl_c_ends_a_command_in_a_sentence(monkeypatch, capsys):
    def stopped(_):
        raise KeyboardInterrupt

    monkeypatch.setattr(hint, "main", stopped)
    monkeypatch.setattr("sys.argv", ["grader", "hint"])
    monkeypatch.delitem(sys.modules, "grader.__main__")
    with pytest.raises(SystemExit) as ended:
        runpy.run_module("grader", run_name="__main__")
    assert ended.value.code == 130 and capsys.readouterr().err == "python -m grader: stopped by Ctrl-C\n"


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
        ("run nonsense", "question must be one of the course's questions, got 'nonsense'"),
        ("run answer.py", "there is no file 'answer.py'"),
        ("run gemm_tiling.reuse answer.py", "there is no file 'answer.py'"),
        ("run", "the following arguments are required: what"),
        ("hint nonsense", "question must be one of the course's questions, got 'nonsense'"),
        ("hint gemm_tiling.reuse 9", "step must be from 1 to 3, got 9"),
        ("hint gemm_tiling.reuse two", "argument step: invalid int value: 'two'"),
    ],
)
def test_a_wrong_usage_is_said_and_nothing_is_done(words, said, capsys):
    assert ended(words) == EXIT_USAGE
    out, err = capsys.readouterr()
    assert said in err and "Errno" not in err and not out


def test_help_does_nothing_else(capsys):
    assert ended("work --help") == 0
    assert "copied" not in capsys.readouterr().out


HALF = "def reuse(bm, bn):\n    return bm * bn / (bm + bn)\n"
DOUBLED = """@triton.jit
def doubled(x_ptr, y_ptr, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y_ptr + offs, 2 * tl.load(x_ptr + offs))


def launch_doubled(p):
    return {"steps": [{"kernel": doubled, "grid": (p.N // 64,), "constexprs": {"BLOCK": 64}}]}
"""


def notebook(name: str, source: str) -> str:
    cell = {
        "cell_type": "code",
        "metadata": {"nbgrader": {"grade_id": name}},
        "source": source.splitlines(True),
    }
    return json.dumps({"cells": [{"cell_type": "markdown", "metadata": {}, "source": ["text"]}, cell]})


@pytest.mark.parametrize("how", ["{answer}", "gemm_tiling.reuse {answer}", "gemm_tiling.reuse {lab}"])
def test_run_tries_an_answer_on_every_public_case(how, tmp_path, capsys):
    answer, lab = tmp_path / "mine.py", tmp_path / "lab.ipynb"
    answer.write_text(HALF)
    lab.write_text(notebook("reuse", HALF))
    assert ended(f"run {how.format(answer=answer, lab=lab)}") == 1
    out = capsys.readouterr().out
    assert "case 0: reuse(64, 64)" in out and "reuse is 32, wanted 64" in out and "0 of 3 cases right" in out


@pytest.mark.parametrize("command", ["run", "check"])
def test_the_cell_of_the_lab_in_work_needs_no_file(command, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(running, "ROOT", tmp_path)
    assert ended(f"{command} gemm_tiling.reuse") == EXIT_USAGE
    said = capsys.readouterr().err
    assert f"Give the answer as a file: python -m grader {command} gemm_tiling.reuse FILE" in said
    lab = tmp_path / "work" / questions.find("gemm_tiling.reuse").notebook_path
    lab.parent.mkdir(parents=True)
    lab.write_text(notebook("reuse", HALF))
    assert ended(f"{command} gemm_tiling.reuse") == 1
    assert "reuse is 32, wanted 64" in capsys.readouterr().out


def test_run_takes_a_kernels_own_sizes(tmp_path, capsys):
    answer = tmp_path / "mine.py"
    answer.write_text(DOUBLED)
    assert ended(f"run {answer} --case N=192") == 0
    assert "case: N = 192, fp32" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("text", "how", "said"),
    [
        ("x = 1\n", "{mine}", "defines no function that a question asks for"),
        ("def reuse(bm, bn)\n", "{mine}", "is no Python: expected ':' (line 1)"),
        ("def launch(p): pass\n", "{mine}", "may answer roofline.layernorm_gelu, gemm_tiling.tiled_gemm"),
        (HALF, "{mine} --case 3", None),
        (HALF, "gemm_tiling.reuse {mine} --case 3", "case must be a number from 0 to 2"),
        (HALF, "gemm_tiling.reuse {mine} --case M=3", "--case must be a number from 0 to 2, got 'M=3'"),
        (DOUBLED, "roofline.doubled {mine} --case M=3", "case must give whole numbers for N"),
        (DOUBLED, "roofline.doubled {mine} --case N", "or a kernel's sizes such as M=64,N=40, got 'N'"),
        ("{}", "gemm_tiling.reuse {lab}", "can't be read as a notebook"),
        (notebook("other", HALF), "gemm_tiling.reuse {lab}", "has no answer cell of gemm_tiling.reuse"),
        (notebook("reuse", HALF), "{lab}", "a notebook holds several answers, so say which"),
    ],
)
def test_what_run_cannot_use_is_said(text, how, said, tmp_path, capsys):
    for name in ("mine.py", "lab.ipynb"):
        (tmp_path / name).write_text(text)
    assert ended("run " + how.format(mine=tmp_path / "mine.py", lab=tmp_path / "lab.ipynb")) == EXIT_USAGE
    assert (said or "case must be") in capsys.readouterr().err


def test_hints_come_one_at_a_time(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("TILE_RECORDS", str(tmp_path))
    said = []
    for words in ("hint gemm_tiling.reuse", "hint gemm_tiling.reuse", "hint gemm_tiling.reuse 1"):
        assert ended(words) == 0
        said.append(capsys.readouterr().out)
    assert [one[:11] for one in said] == ["Hint 1 of 3", "Hint 2 of 3", "Hint 1 of 3"]
    assert "ask again for more" in said[0]
