"""Verdicts from end to end: right answers pass, and whatever else a cell may hold gets a clear report."""

import signal
from dataclasses import replace
from functools import partial

import pytest

from grader import questions
from grader.box import warm
from grader.jail import host
from grader.judge import record, referee
from grader.judge.diagnose import from_error
from grader.judge.record import FAIL, PASS, REFUSED

SEED = 2026  # the same hidden cases every time: a red test is a change
REUSE = "def reuse(bm, bn):\n    return {}\n"


def judge(question, source, **more):
    return referee.grade_one(source, questions.find(question), **{"seed": SEED, **more})


def part(verdict, name="values"):
    return next(p for p in verdict.parts if p.name == name)


def test_a_right_answer_has_all_points():
    verdict = judge("gemm_tiling.reuse", REUSE.format("2 * bm * bn / (bm + bn)"))
    assert (verdict.verdict, verdict.points) == (PASS, verdict.of)
    assert len(verdict.seed) == 32 and verdict.level >= 1


BAD = {
    "syntax": ("def reuse(bm, bn:\n    return 1\n", REFUSED, "must be Python"),
    "not started": ("def reuse(bm, bn):\n    raise NotImplementedError\n", FAIL, "not started"),
    "missing function": ("def other(bm, bn):\n    return 1\n", FAIL, "no function reuse"),
    "nothing returned": ("def reuse(bm, bn):\n    pass\n", FAIL, "is there a return"),
    "wrong shape": (REUSE.format("[1.0, 2.0]"), FAIL, "must be a number, got an array of shape (2,)"),
    "wrong type": (REUSE.format("object()"), FAIL, "array of numbers"),
    "a dict": (REUSE.format("{'a': 1}"), FAIL, "must be a number, got a dict"),
    "two values": (REUSE.format("1, 2"), FAIL, "must be a number, got a sequence of 2"),
    "NaN": (REUSE.format("float('nan')"), FAIL, "NaN"),
    "exception": (REUSE.format("1 / 0"), FAIL, "ZeroDivisionError"),
    "another cell's function": (REUSE.format("tile_loads(bm, bn)"), FAIL, "an answer stands alone"),
    "exit": ("def reuse(bm, bn):\n    raise SystemExit\n", FAIL, "ended its own process"),
    "course's own": ("from kernels.gemm_tiling.cost import reuse\n", FAIL, "leave this import out"),
    "the lab's own": ("from grader import check\n" + REUSE.format("1"), FAIL, "leave this import out"),
    "hidden character": ("def reuse(bm, bn):\n    return 1 # \u202e\n", REFUSED, "hidden character"),
    "huge": ("x = 1\n" * 100_000, REFUSED, "at most 200 kB"),
    "memory": (REUSE.format("len([0] * 10**10)"), FAIL, "more memory than it may have"),
    "empty": ("\n", FAIL, "no function reuse"),
    "brackets": (REUSE.format("(" * 300 + "1" + ")" * 300), REFUSED, "must be Python"),
    "nested deeper than anyone writes": (REUSE.format("bm" + ".T" * 400), REFUSED, "at most 300 deep"),
    "nested deeper than Python reads": (REUSE.format("-" * 100_000 + "1"), REFUSED, "at most 300 deep"),
    "a flood": (REUSE.format("np.zeros(2 * 10**7)"), FAIL, "sent more than 64 MiB"),
    "a sleep": ("import time\ndef reuse(bm, bn):\n    time.sleep(99)\n", FAIL, "what does it wait for"),
    "a signal without a name": (
        "import os\ndef reuse(bm, bn):\n    os.kill(os.getpid(), 40)\n",
        FAIL,
        "crashed (signal 40)",
    ),
    "keys without end": (
        REUSE.format("{f'a key that is long enough to fill a page {i}': 1 for i in range(1000)}"),
        FAIL,
        "must be a number, got a dict",
    ),
    "lists within lists": (
        "def reuse(bm, bn):\n    found = []\n    for _ in range(99):\n        found = [found]\n    return found\n",
        FAIL,
        "lists within lists more than",
    ),
    "equal to all": (
        "class E(float):\n    __eq__ = lambda s, o: True\ndef reuse(bm, bn):\n    return E(1)\n",
        FAIL,
        "wanted",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_said(monkeypatch, name):
    source, verdict, words = BAD[name]
    if name == "a sleep":  # who sleeps is stopped after half a minute; here sooner
        monkeypatch.setattr(host, "call", partial(host.call, limits=replace(host.NUMPY_LIMITS, wall_s=4.0)))
    got = judge("gemm_tiling.reuse", source)
    assert got.verdict == verdict and got.points == 0
    assert words in str(got)


STUBS = {
    "gemm_tiling.reuse": "def reuse(bm, bn):\n    raise NotImplementedError\n",
    "gemm_tiling.tiled_gemm": "def launch(p):\n    raise NotImplementedError\n",
}


@pytest.mark.parametrize("question", STUBS)
def test_a_cell_that_nobody_has_begun_is_no_failure_to_look_at(question):
    verdict = judge(question, STUBS[question])
    assert (verdict.verdict, verdict.points, verdict.not_started) == (FAIL, 0, True)
    assert "NOT STARTED" in str(verdict) and "NOT STARTED" in verdict.for_feedback()._repr_html_()
    again = record.Record.from_json(verdict.as_json())
    assert again.not_started and not judge("gemm_tiling.reuse", REUSE.format("1")).not_started


def test_an_endless_loop_is_stopped_and_the_next_check_works():
    stuck = judge("gemm_tiling.reuse", "def reuse(bm, bn):\n    while True:\n        pass\n")
    assert stuck.verdict == FAIL and "still running" in str(stuck)
    assert judge("gemm_tiling.reuse", REUSE.format("2 * bm * bn / (bm + bn)")).passed


# what one call alone does; the others are right -> who is named
ONE_CALL = {
    "ends its process": (
        "gemm_tiling.reuse",
        "import os\ndef reuse(bm, bn):\n    return 2 * bm * bn / (bm + bn) if bm > 1 else os._exit(0)\n",
        "2 of 3 public cases are right; reuse(1, 128): the process of the answer ended itself",
    ),
    "changes its array": (
        "expert_load_balance.count_loads",
        "def count_loads(topk_ids, device_of, devices):\n"
        "    loads = np.bincount(topk_ids.ravel(), minlength=len(device_of))\n"
        "    topk_ids[0] += devices == 4\n"
        "    return loads, np.bincount(device_of, weights=loads, minlength=devices)\n",
        "count_loads(an array of 33 x 2, an array of 8, 4): count_loads changed the array",
    ),
}


@pytest.mark.parametrize("what", ONE_CALL)
def test_the_call_that_does_it_is_named(what):
    question, source, said = ONE_CALL[what]
    verdict = judge(question, source)
    assert verdict.verdict == FAIL and verdict.parts[0].came.startswith(said), str(verdict)


def test_what_only_many_calls_together_do_is_said_of_them_together():
    counted = "calls = []\ndef reuse(bm, bn):\n    calls.append(bm)\n    assert len(calls) < 3 or {}\n    return 2 * bm * bn / (bm + bn)\n"
    verdict = judge("gemm_tiling.reuse", counted.format("__import__('os')._exit(0)"))
    assert verdict.verdict == FAIL and "3 calls, one after the other:" in verdict.parts[0].came, str(verdict)


# how an answer's process ends -> (what came, where to look)
ENDS = {
    "os._exit(3)": ("the process of the answer ended itself (exit code 3)", "such as os._exit"),
    "sys.exit()": (
        "the answer ended its own process (exit or quit)",
        "line 3 of the cell: what ends the process",
    ),
    "ctypes.string_at(0)": ("the process of the answer crashed (SIGSEGV)", "what reaches below Python"),
    "os.kill(os.getpid(), 9)": ("the process of the answer was killed", "how many values it holds"),
}


@pytest.mark.parametrize("end", ENDS)
def test_a_process_that_ends_is_a_fail_that_says_how_and_the_next_check_works(end):
    verdict = judge("gemm_tiling.reuse", f"import os, sys, ctypes\ndef reuse(bm, bn):\n    {end}\n")
    (came, look), lost = ENDS[end], verdict.parts[0]
    assert verdict.verdict == FAIL and came in lost.came and look in lost.look, str(verdict)
    assert "loop" not in str(verdict)
    assert judge("gemm_tiling.reuse", REUSE.format("2 * bm * bn / (bm + bn)")).passed


# what a box reports of a process -> the kind of its end, and a word of where to look
REPORTED = {
    "too much": ({"over": "wrote more than 256 MiB"}, warm.OVERFULL, "how much"),
    "a sleep": (
        {"late": True, "seconds": 30.0, "cpu_s": 0.1, "waited_s": 0.0},
        warm.LATE,
        "what it waits for",
    ),
    "a loop": ({"exit": -signal.SIGXCPU}, warm.ENDLESS, "a loop that never ends"),
    "no memory": ({"exit": -signal.SIGKILL}, warm.KILLED, "how many values"),
    "a crash": ({"exit": -signal.SIGABRT}, warm.CRASHED, "below Python"),
    "an exit": ({"exit": 0}, warm.EXITED, "os._exit"),
}


@pytest.mark.parametrize("what", REPORTED)
def test_each_end_of_a_process_has_its_own_place_to_look(what):
    status, end, look = REPORTED[what]
    outcome = warm._outcome(b"", status, "nonce", warm.Limits())
    failed = from_error(outcome.error, "a case")
    assert outcome.end == end and look in failed.look and failed.came.startswith("a case: the "), failed.came
    assert ("loop" in failed.look) == (end == warm.ENDLESS) and "process" in failed.told


def test_who_writes_into_the_channel_is_told_that():
    forged = warm._outcome(b"not a frame", {"exit": 0}, "nonce", warm.Limits())
    failed = from_error(forged.error, "")
    assert failed.came == failed.told == warm.WROTE and "pipes" in failed.look


def test_programs_that_wait_for_others_are_told_so():
    error = {"stage": "kernel", "kind": "OverLimit", "line": None}
    error["message"] = (
        "programs wait for each other in a loop, and the grid has 600 of them; 512 may take turns at most"
    )
    assert "waits for another one" in from_error(error, "a case").look
    assert "how often its loops run" in from_error(error | {"message": "2^40 operations"}, "a case").look


def test_what_an_honest_answer_may_hold():
    source = """
    from collections import Counter

    def reuse(bm, bn):
        counted = Counter({"flops": 2 * bm * bn, "loads": bm + bn})
        return np.float32(counted["flops"] / counted["loads"]) if bm < 0 else counted["flops"] / counted["loads"]
    """
    import textwrap

    assert judge("gemm_tiling.reuse", textwrap.dedent(source)).passed


def test_one_deadline_for_all_of_a_check(monkeypatch):
    from grader.judge import evidence

    monkeypatch.setattr(evidence, "MOST_CPU_S", 0.5)
    slow = "def reuse(bm, bn):\n    for _ in range(10**7): pass\n    return 2 * bm * bn / (bm + bn)\n"
    verdict = judge("gemm_tiling.reuse", slow)
    assert verdict.verdict == FAIL and "processor time" in str(verdict)


def test_many_prints_are_cut_and_do_not_matter():
    source = "def reuse(bm, bn):\n    for i in range(300_000):\n        print(i)\n    return 2 * bm * bn / (bm + bn)\n"
    verdict = judge("gemm_tiling.reuse", source)
    assert verdict.passed and len(str(verdict)) < 4000
    assert "    11\n    … and 899,988 more lines" in str(verdict)


def test_hidden_cases_are_told_by_kind_alone():
    source = "def reuse(bm, bn):\n    return 2 * bm * bn / (bm + bn) if (bm, bn) in ((64, 64), (128, 64), (1, 128)) else 0\n"
    report = str(judge("gemm_tiling.reuse", source))
    assert "a hidden case (" in report and "drawn anew for you to see: reuse(" in report


def test_a_failure_says_how_many_public_cases_are_right():
    report = str(judge("gemm_tiling.reuse", REUSE.format("2 * bm * bn / (bm + bn) if bm > 1 else 0")))
    assert "2 of 3 public cases are right; reuse(1, 128): reuse is 0, wanted 1.98" in report


def test_a_diagnosis_speaks_only_where_the_mistake_gives_every_result():
    half, once = REUSE.format("bm * bn / (bm + bn)"), REUSE.format("(bm * bn if bm == 64 else 0) / (bm + bn)")
    assert "a multiply-add counts as two FLOP" in str(judge("gemm_tiling.reuse", half))
    assert "a multiply-add counts as two FLOP" not in str(judge("gemm_tiling.reuse", once))


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
