"""A wrong kernel of the capstone is told its mistake, by the sentence that belongs to it."""

from dataclasses import replace

import numpy as np
import pytest

from grader.proofs import right
from grader.proofs import wrong as zoo
from grader.topics.next_bottleneck.residual_norm.question import QUESTION as NORM
from grader.topics.next_bottleneck.rotary_cache.question import QUESTION as ROTARY

if not (right.ROOT / "solutions").exists():
    pytest.skip("solutions/, which is not handed out", allow_module_level=True)

pytestmark = pytest.mark.usefixtures("no_jails_left")

TOLD = [
    (NORM, "the unrounded sum normed"),  # off by its last bits alone
    (ROTARY, "one weight for both"),
    (ROTARY, "cosines for sines"),
]


def test_too_few_pages_are_said():
    case = replace(ROTARY.public[0], sizes=ROTARY.public[0].sizes | {"T": 40, "L": 4, "P": 8})
    with pytest.raises(ValueError, match="P must be at least 41"):
        ROTARY.inputs(case, np.random.default_rng(0))


@pytest.mark.parametrize("question, name", TOLD, ids=[name for _, name in TOLD])
def test_a_wrong_kernel_is_told_its_mistake(question, name):
    sentence = next(one.sentence for one in question.mistakes if one.name == name)
    alone = replace(question, parts=question.parts[:1], compile_case=None, metered=None)
    values = zoo.judged(alone, zoo.source(question, zoo.table(question)[name])).parts[0]
    assert values.state == "FAIL" and sentence in values.look, values.look
