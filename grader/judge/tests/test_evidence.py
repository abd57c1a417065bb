"""What no answer can buy: points for wrong results, or the blame laid on a busy machine."""


import pytest

from grader import questions
from grader.judge import referee
from grader.judge.record import FAIL, INCONCLUSIVE

SEED = 2026  # the same hidden cases every time: a red test is a change


def judge(source: str, question, **more):
    question = questions.find(question) if isinstance(question, str) else question
    return referee.grade_one(source, question, **{"seed": SEED, "eager": False, **more})


IN_A_CROWD = """
@triton.jit
def doubled(x_ptr, y_ptr, crowd_ptr, N, BLOCK: tl.constexpr):
    tl.atomic_add(crowd_ptr, 1)
    if tl.load(crowd_ptr) > 0:
        offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        tl.store(y_ptr + offs, {value} * tl.load(x_ptr + offs, mask=offs < N, other=0.0), mask=offs < N)


def launch_doubled(p):
    scratch = {{"crowd": ((1,), "int32", 0)}}
    {grid}
    return {{"scratch": scratch, "steps": [{{"kernel": doubled, "grid": (grid,), "constexprs": {{"BLOCK": 64}}}}]}}
"""


@pytest.mark.parametrize(
    "value, grid, verdict",
    [
        ("2", "grid = 3000", INCONCLUSIVE),
        ("3", "grid = 3000", FAIL),
        ("(2 + (N > 300))", "grid = 3000", FAIL),
    ],
    ids=["right", "wrong", "wrong in hidden cases"],
)
def test_what_is_wrong_in_the_order_that_ran_is_the_answers_fault(value, grid, verdict):
    judged = judge(IN_A_CROWD.format(value=value, grid=grid), "roofline.doubled")
    assert judged.verdict == verdict, str(judged)
    assert verdict == INCONCLUSIVE or "is" in judged.parts[0].came
