"""No right answer fails where an axis is long and values, a dtype or a layout are special."""

import pytest

from grader.proofs import crossed, honest, right

if not (right.ROOT / "solutions").exists():
    pytest.skip("solutions/, which is not handed out", allow_module_level=True)

pytestmark = pytest.mark.usefixtures("no_jails_left")
SEEDS = 12
QUICK = "sampling_fusion.draw"


@pytest.mark.parametrize(
    "question",
    [
        pytest.param(one, marks=() if one.id == QUICK else pytest.mark.slow, id=one.id)
        for one in right.kernel_questions()
    ],
)
def test_a_right_answer_passes_all_crossings(question):
    for seed in range(1 if question.id == QUICK else SEEDS):
        assert crossed.failures(question, right.right(question.id), seed) == []


@pytest.mark.slow
@pytest.mark.parametrize("question", right.kernel_questions(), ids=lambda one: one.id)
def test_unusual_right_answers_pass_them_too(question):
    for name, (lost, _) in honest.forms(question).items():
        if "values" not in lost:
            assert crossed.failures(question, honest.source(question, name), len(name)) == [], name


def test_an_answer_that_drops_what_is_special_where_rows_are_long_fails():
    question = next(one for one in right.kernel_questions() if one.id == "roofline.layernorm_gelu")
    source = right.edited(
        right.right(question.id),
        [("    g = 0.5", "    if N > 2000:\n        x = tl.where(x != x, 0.0, x)\n    g = 0.5")],
    )
    assert crossed.failures(question, source, 0)
