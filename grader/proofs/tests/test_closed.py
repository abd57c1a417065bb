"""Answers that do too much lose points, and the generator makes what it says."""

import ast
import json

import pytest

from grader import questions
from grader.proofs import closed, right, useless, wasteful, wasteful_ranks

if not (right.ROOT / "solutions").exists():
    pytest.skip("solutions/, which is not handed out", allow_module_level=True)

pytestmark = pytest.mark.usefixtures("no_jails_left")
SAMPLE = closed.tasks(everything=False)
QUICK = "roofline.doubled"


LATER = ("idle programs", "every load twice")


@pytest.mark.parametrize(
    "way", [pytest.param(way, marks=[pytest.mark.slow] * (way in LATER)) for way in wasteful.WAYS]
)
def test_a_first_kernel_that_does_too_much_loses_its_point(way):
    assert closed.judge(QUICK, way, closed.EVERYWHERE) == closed.DIES


@pytest.mark.slow
@pytest.mark.parametrize("task", SAMPLE, ids=lambda task: ", ".join(task))
def test_an_answer_that_does_too_much_loses_points(task):
    assert closed.judge(*task) != closed.LIVES


@pytest.mark.slow
def test_an_answer_that_wastes_for_one_stride_alone_loses_its_point():
    told, question = closed.ALONE_FOR + "p.stride_xn != 1", "roofline.subtracted"
    assert (question, "whole numbers", told) in closed.tasks(True, question)
    assert closed.judge(question, "whole numbers", told) == closed.DIES


def test_a_property_is_of_hidden_cases_alone():
    found = closed.properties(questions.find("quantization_layouts.w4a16_gemv"))
    assert list(found) == ['p.dtypes["y"] == "fp32"', "p.stride_wk != 1", "p.G == 32"]
    assert all(case.sizes["G"] == 32 for case in found["p.G == 32"])


KINDS = (QUICK, "roofline.roof", "expert_load_balance.expert_layer")  # a kernel, numpy, ranks
USELESS = [(question, way) for question in KINDS for way in useless.RESULTS]
ONE_OF_EACH = list(zip(KINDS, useless.RESULTS, strict=True))[:2]  # useless ranks are below


@pytest.mark.parametrize(
    ("question", "way"),
    [pytest.param(*one, marks=() if one in ONE_OF_EACH else pytest.mark.slow) for one in USELESS],
)
def test_a_useless_answer_loses_its_points(question, way):
    assert closed.judge(question, way, closed.EVERYWHERE) == closed.DIES


@pytest.mark.parametrize(
    "way",
    [
        wasteful_ranks.TWICE,
        *(
            pytest.param(way, marks=pytest.mark.slow)
            for way in wasteful_ranks.SENDING
            if way != wasteful_ranks.TWICE
        ),
    ],
)
def test_ranks_that_send_too_much_or_nothing_lose_points(way):
    assert closed.judge("expert_load_balance.dispatch_tokens", way, closed.EVERYWHERE) == closed.DIES


def test_an_answer_that_is_wrong_beyond_every_known_size_loses_its_points():
    assert closed.judge(QUICK, useless.ZEROS, closed.BEYOND + "N") == closed.DIES
    way = "beyond axis 0 of argument 0"
    assert closed.judge("expert_load_balance.dispatch_tokens", way, closed.EVERYWHERE) == closed.DIES


def test_a_record_goes_on_where_it_ended(tmp_path, monkeypatch):
    asked, judged = closed.tasks(True, QUICK)[:3], []
    monkeypatch.setattr(closed, "tasks", lambda everything, question=None: asked)
    monkeypatch.setattr(closed, "judge", lambda *task: judged.append(task) or closed.DIES)
    record = tmp_path / "closed.json"
    closed.run(True, lambda row: None, record=record)
    asked = closed.tasks(True)
    monkeypatch.setattr(closed, "tasks", lambda everything, question=None: [*asked, (QUICK, "a new way", "")])
    rows, broken = closed.run(True, lambda row: None, record=record)
    assert len(judged) == len(rows) == 4 and broken == []
    kept = json.loads(record.read_text(encoding="utf-8"))
    assert kept["shares"][QUICK] == {"die": 4, "of": 4, "not made": 0} and kept["date"]


def test_every_question_is_asked_in_every_way():
    asked = closed.tasks(everything=True)
    assert {question for question, _, _ in asked} == set(questions.load())
    ranks = {way for q in questions.load().values() if q.kind == "ranks" for way in closed.ways(q)}
    assert {way for _, way, _ in asked} == {*wasteful.WAYS, *useless.RESULTS, *ranks}
    for question in right.kernel_questions():
        source = wasteful.cell(right.right(question.id), question.entry, wasteful.WAYS["every store twice"])
        ast.parse(source)
        assert "right_plan(p)" in source and f"def {question.entry}(p)" in source


def test_an_answer_that_does_no_more_would_live(monkeypatch):
    """So a generator that changes nothing is seen."""
    monkeypatch.setitem(wasteful.WAYS, "nothing", lambda copies, tops: wasteful.More())
    assert closed.judge(QUICK, "nothing", closed.EVERYWHERE) == closed.LIVES
    assert questions.find(QUICK).points == 3
