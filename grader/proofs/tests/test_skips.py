"""Answers that leave out what seems not to matter lose their values, and the generator makes what it says."""

import ast

import pytest

from grader.proofs import right, skips
from grader.proofs.resumed import DIES, LIVES, NOT_MADE

if not (right.ROOT / "solutions").exists():
    pytest.skip("solutions/, which is not handed out", allow_module_level=True)

pytestmark = pytest.mark.usefixtures("no_jails_left")
QUICK = "roofline.doubled"


@pytest.mark.parametrize("task", skips.tasks(everything=False), ids=lambda task: task[0])
def test_an_answer_that_leaves_something_out_loses_its_values(task):
    assert skips.judge(*task) in (DIES, NOT_MADE)


def test_an_answer_that_leaves_nothing_out_would_live(monkeypatch):
    """So a generator that changes nothing is seen."""
    monkeypatch.setitem(skips.OF_LOADS, "nothing", "value")
    skips.of_question.cache_clear()
    name = next(one for one in skips.of_question(QUICK) if one.startswith("nothing"))
    assert skips.judge(QUICK, name) == LIVES
    skips.of_question.cache_clear()


def test_a_skip_that_needs_whole_numbers_is_not_made_of_floats():
    name = next(one for one in skips.of_question(QUICK) if one.startswith("at most 255"))
    assert skips.judge(QUICK, name) == NOT_MADE


def test_every_kernel_question_is_asked_for_loads_and_every_dot_for_zeros():
    for question in right.kernel_questions():
        names = skips.of_question(question.id)
        assert any(name.startswith("a NaN counts as 0") for name in names), question.id
        tree = ast.parse(right.right(question.id))
        dots = sum(
            isinstance(node, ast.Call) and ast.unparse(node.func) == "tl.dot" for node in ast.walk(tree)
        )
        assert sum(name.startswith("zeros of the first") for name in names) == dots, question.id


@pytest.mark.parametrize("every", [False, pytest.param(True, marks=pytest.mark.slow)], ids=["some", "all"])
def test_skips_are_python(every):
    """Some are the last one of each question and the first one of each way."""
    ways = set()
    for question in right.kernel_questions():
        found = skips.of_question(question.id)
        for number, (name, skip) in enumerate(found.items(), 1):
            if every or number == len(found) or name.partition(":")[0] not in ways:
                ways.add(name.partition(":")[0])
                ast.parse(skips.made(right.right(question.id), skip))


def test_harmless_skips_are_still_made():
    """So none that has another name now, and may do harm, is forgotten."""
    asked = {question.id for question in right.kernel_questions()}
    assert set(skips.harmless()) <= asked
    for question, names in skips.harmless().items():
        assert set(names) <= set(skips.of_question(question)), question
