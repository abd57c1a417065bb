"""Both ways to Triton IR judge alike: a fixed sample here, one honest form and one wrong answer of each topic in proofs."""

import json

import pytest

from grader import questions
from grader.jail import host as jail
from grader.proofs import bad_kernels, front_ends, right

if not (right.ROOT / "solutions").exists():
    pytest.skip("solutions/, which is not handed out", allow_module_level=True)

pytestmark = pytest.mark.usefixtures("no_jails_left")

QUESTIONS = right.kernel_questions()
SAMPLE = [("roofline.doubled", "honest: as it stands"), ("roofline.doubled", "wrong: shifted by one")]
MORE = [(question.id, name) for question in QUESTIONS for name in front_ends.sampled(question)]
RIGHT = [(question.id, "honest: as it stands") for question in QUESTIONS]


@pytest.mark.parametrize("question, name", SAMPLE, ids=[": ".join(row) for row in SAMPLE])
def test_both_ways_judge_alike(question, name):
    assert front_ends.judge(question, name)["broken"] == ""


@pytest.mark.slow
@pytest.mark.parametrize("question, name", RIGHT + MORE, ids=[": ".join(row) for row in RIGHT + MORE])
def test_both_ways_judge_alike_in_every_topic(question, name):
    assert front_ends.judge(question, name)["broken"] == ""


def test_an_answer_of_which_the_ways_think_differently_is_found(monkeypatch):
    """The second way is told of another answer."""
    judged = front_ends.judged

    def unequal(question, source, way):
        verdict, heard = judged(question, source, front_ends.COMPILED)
        return (verdict | {"points": -1} if way is front_ends.IN_PYTHON else verdict), heard

    monkeypatch.setattr(front_ends, "judged", unequal)
    found = front_ends.differences("roofline.doubled", "def launch(p):\n    raise NotImplementedError")
    assert found == ("verdict/points must be the same both ways, got 0.0 and -1", "")


SAID = [name for name in bad_kernels.BODIES if name in ("a while over a block", "a word that Triton has not")]
NAMES = [name if name in SAID else pytest.param(name, marks=pytest.mark.slow) for name in bad_kernels.BODIES]


@pytest.mark.parametrize("name", NAMES)
def test_errors_of_the_front_end_come_with_the_same_line_and_words(name):
    source, question = bad_kernels.source(name), questions.find("roofline.doubled")
    one, other = (front_ends.lowered(question, source, way) for way in ways())
    assert one == other
    assert all(error["stage"] == "compile" and error["message"] for error, _ in one)


def test_enough_errors_are_compared():
    assert len(bad_kernels.BODIES) >= 30


def ways():
    return front_ends.COMPILED, front_ends.IN_PYTHON


def test_a_worker_can_be_asked_for_python():
    assert (
        front_ends.IN_PYTHON.environment == {jail.FRONT_END: "python"} and not front_ends.COMPILED.environment
    )


def test_the_record_holds_what_it_promises():
    """The last run of `python -m grader suites front-ends --all --into grader/results/front_ends.json`."""
    found = json.loads((right.ROOT / "grader/results/front_ends.json").read_text(encoding="utf-8"))
    rows = found["questions"].values()
    assert set(found["questions"]) <= {one.id for one in QUESTIONS} and found["versions"]["triton"]
    assert [name for row in rows for name in row["broken"]] == []
    assert all(row["answers"] == row["of"] or row["answers"] >= 5 for row in rows)
    assert sum(row["answers"] for row in rows) >= 350
