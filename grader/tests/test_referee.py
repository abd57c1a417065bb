"""Verdicts from end to end: right answers pass, and whatever else a cell may hold gets a clear report."""

import pytest

from grader import questions
from grader.judge import record, referee
from grader.judge.record import FAIL, PASS, REFUSED

REUSE = "def reuse(bm, bn):\n    return {}\n"


def judge(question, source, **more):
    return referee.grade_one(source, questions.find(question), **more)


def part(verdict, name="values"):
    return next(p for p in verdict.parts if p.name == name)


def test_a_right_answer_has_all_points():
    verdict = judge("gemm_tiling.reuse", REUSE.format("2 * bm * bn / (bm + bn)"))
    assert (verdict.verdict, verdict.points) == (PASS, verdict.of)
    assert len(verdict.seed) == 32 and verdict.level >= 1


BAD = {
    "syntax": ("def reuse(bm, bn:\n    return 1\n", FAIL, "SyntaxError"),
    "not started": ("def reuse(bm, bn):\n    raise NotImplementedError\n", FAIL, "not started"),
    "missing function": ("def other(bm, bn):\n    return 1\n", FAIL, "no function reuse"),
    "nothing returned": ("def reuse(bm, bn):\n    pass\n", FAIL, "is there a return"),
    "wrong shape": (REUSE.format("[1.0, 2.0]"), FAIL, "shape (2,)"),
    "wrong type": (REUSE.format("object()"), FAIL, "array of numbers"),
    "NaN": (REUSE.format("float('nan')"), FAIL, "nan"),
    "exception": (REUSE.format("1 / 0"), FAIL, "ZeroDivisionError"),
    "another cell's function": (REUSE.format("tile_loads(bm, bn)"), FAIL, "an answer stands alone"),
    "exit": ("def reuse(bm, bn):\n    raise SystemExit\n", FAIL, "ended its own process"),
    "course's own": ("from kernels.gemm_tiling.cost import reuse\n", REFUSED, "own solution"),
    "torch": ("import torch\ndef reuse(bm, bn):\n    return 1\n", REFUSED, "numpy and math"),
    "hidden character": ("def reuse(bm, bn):\n    return 1 # \u202e\n", REFUSED, "hidden character"),
    "huge": ("x = 1\n" * 100_000, REFUSED, "at most 200 kB"),
    "memory": (REUSE.format("len([0] * 10**10)"), FAIL, "MemoryError"),
    "empty": ("\n", FAIL, "no function reuse"),
    "deep": (REUSE.format("(" * 300 + "1" + ")" * 300), FAIL, "SyntaxError"),
    "equal to all": (
        "class E(float):\n    __eq__ = lambda s, o: True\ndef reuse(bm, bn):\n    return E(1)\n",
        FAIL,
        "wanted",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_said(name):
    source, verdict, words = BAD[name]
    got = judge("gemm_tiling.reuse", source)
    assert got.verdict == verdict and got.points == 0
    assert words in str(got)


def test_an_endless_loop_is_stopped_and_the_next_check_works():
    stuck = judge("gemm_tiling.reuse", "def reuse(bm, bn):\n    while True:\n        pass\n")
    assert stuck.verdict == FAIL and "still running" in str(stuck)
    assert judge("gemm_tiling.reuse", REUSE.format("2 * bm * bn / (bm + bn)")).passed


@pytest.mark.parametrize("crash", ["os._exit(0)", "ctypes.string_at(0)"])
def test_a_dying_process_is_a_fail_and_the_next_check_works(crash, monkeypatch):
    from grader.judge import allowed

    monkeypatch.setattr(allowed, "NUMPY_IMPORTS", {"numpy", "math", "os", "ctypes"})
    verdict = judge("gemm_tiling.reuse", f"import os, ctypes\ndef reuse(bm, bn):\n    {crash}\n")
    assert verdict.verdict == FAIL and "process of the answer" in str(verdict)
    assert judge("gemm_tiling.reuse", REUSE.format("2 * bm * bn / (bm + bn)")).passed


def test_many_prints_are_cut_and_do_not_matter():
    source = "def reuse(bm, bn):\n    for i in range(300_000):\n        print(i)\n    return 2 * bm * bn / (bm + bn)\n"
    verdict = judge("gemm_tiling.reuse", source)
    assert verdict.passed and len(str(verdict)) < 4000


def test_hidden_cases_are_told_by_kind_alone():
    source = "def reuse(bm, bn):\n    return 2 * bm * bn / (bm + bn) if (bm, bn) in ((64, 64), (128, 64), (1, 128)) else 0\n"
    report = str(judge("gemm_tiling.reuse", source))
    assert "a hidden case (" in report and "wanted" in report


def test_the_seed_decides_the_hidden_cases():
    question = questions.find("gemm_tiling.tile_loads")
    from grader.judge.evidence import Evidence

    cases = [repr(Evidence(question, "", seed).hidden_cases()) for seed in (1, 1, 2)]
    assert cases[0] == cases[1] != cases[2]


def test_trouble_of_our_own_is_inconclusive_and_never_zero_points_in_silence(monkeypatch):
    from grader.judge import parts

    monkeypatch.setitem(parts.JUDGES, "calls", lambda *a: 1 / 0)
    verdict = judge("gemm_tiling.reuse", REUSE.format("1"))
    assert verdict.verdict == record.INCONCLUSIVE and "stumbled" in verdict.message
    assert record.EXIT[verdict.verdict] == 3


def test_an_unknown_question_is_named():
    with pytest.raises(ValueError, match="did you mean gemm_tiling.reuse"):
        questions.find("gemm_tiling.reus")


def test_a_record_survives_json():
    import json

    verdict = judge("gemm_tiling.reuse", REUSE.format("1"))
    again = record.Record.from_json(json.loads(json.dumps(verdict.as_json())))
    assert str(again) == str(verdict)
