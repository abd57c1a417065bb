"""Tables larger than a program clears at a time: what none of its turns reaches is seen, with one program and with several."""

from dataclasses import replace

import numpy as np
import pytest

from grader.proofs import necessity, right
from grader.proofs import wrong as zoo
from grader.topics.moe_routing.order.mistakes import BLOCK, CLEARED, SHORTCUTS
from grader.topics.moe_routing.order.question import QUESTION
from grader.topics.moe_routing.shared import rooms

if not (right.ROOT / "solutions").exists():
    pytest.skip("solutions/, which is not handed out", allow_module_level=True)

pytestmark = pytest.mark.usefixtures("no_jails_left")

GAPS = {  # wrong answer -> the kind of case that is there for it
    "expert_ids cleared with a gap between programs": "hundreds of tiles",
    "expert_ids cleared with a gap between turns": "hundreds of tiles, few tokens",
}


@pytest.mark.parametrize(
    "name", [next(iter(GAPS)), *(pytest.param(name, marks=pytest.mark.slow) for name in list(GAPS)[1:])]
)
def test_a_gap_in_what_is_cleared_loses_the_values(name):
    alone = replace(
        QUESTION, hidden=lambda rng: [one for one in QUESTION.hidden(rng) if one.kind == GAPS[name]]
    )
    assert zoo.wrong(replace(alone, parts=QUESTION.parts[:1], compile_case=None, metered=None), name) == ""


def test_a_table_that_nobody_clears_is_told_what_stands_there():
    """The grid is rarely to blame where it is padding that was never written."""
    alone = replace(QUESTION, parts=QUESTION.parts[:1], compile_case=None, metered=None)
    values = zoo.judged(alone, zoo.source(QUESTION, zoo.table(QUESTION)["expert_ids not cleared"])).parts[0]
    expert_ids = next(tensor for tensor in QUESTION.tensors if tensor.name == "expert_ids")
    assert "elements of expert_ids were never written" in values.came
    assert values.look.startswith(expert_ids.unclaimed) and "the grid" in values.look, values.look


@pytest.mark.parametrize("name", GAPS)
def test_its_kind_shows_it_whatever_is_drawn(name):
    for seed in range(60):
        drawn = necessity.Drawn(QUESTION, seed)
        place = next(i for i, one in enumerate(drawn.cases) if one.kind == GAPS[name])
        case = drawn.cases[place]
        assert drawn.catches(place, SHORTCUTS[name], False), case
        assert rooms(case.sizes) > CLEARED and (case.sizes["T"] > BLOCK) == ("programs" in name), case
        assert np.prod([case.sizes["T"], case.sizes["E"]]) < 50_000  # a case that costs little
