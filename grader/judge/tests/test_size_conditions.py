"""An answer's own conditions on sizes are followed without running it, and cases are found that go other ways."""

import numpy as np
import pytest

from grader import questions
from grader.judge.ranks_evidence import RanksEvidence
from grader.judge.size_conditions import Conditions, telling
from grader.questions import Together
from grader.topics.expert_load_balance.shared import NEAR

CELL = """
def layer(comm, x, topk_ids, topk_weights, gate):
    per = len(gate)
    experts = per * comm.ranks
    many, most = len(x) >= 500 and 8 <= per < 40, max(per, 2 * x.shape[1])
    if {condition}:
        return None
    return x
"""


def case(tokens: int, per: int, columns: int = 4) -> Together:
    one = (
        np.zeros((tokens, columns)),
        np.zeros((tokens, 2), int),
        np.zeros((tokens, 2)),
        np.zeros((per, 4, 8)),
    )
    return Together((one, one), "a kind")


def truths(conditions: Conditions, one: Together) -> set:
    return {way for way in conditions.ways(one) if isinstance(way[1], bool)}


@pytest.mark.parametrize(
    "condition, true, false",
    [
        ("many", (500, 8), (500, 40)),
        ("len(x) == 256", (256, 1), (257, 1)),
        ("(len(x) > 99) & (experts == 96)", (100, 48), (100, 47)),
        ("not x.shape[0] <= 300 or experts % 7 == 6", (301, 1), (300, 1)),
        ("most > 61", (1, 62), (1, 61)),
        ("comm.ranks * len(topk_ids) // 2 > 77", (78, 1), (77, 1)),
    ],
)
def test_a_condition_on_sizes_goes_its_way(condition, true, false):
    conditions = Conditions(CELL.format(condition=condition), "layer")
    apart = truths(conditions, case(*true)) ^ truths(conditions, case(*false))
    assert {went for _, went in apart} == {True, False}, apart


def test_what_is_not_made_of_sizes_is_unknown_and_nothing_runs():
    text = CELL.format(condition="x[0, 0] > 300 or open('x') == 5 or 1 << 9999 > 3 or 7 // (per - per) == 1")
    conditions = Conditions(text, "layer")
    assert truths(conditions, case(500, 8)) == truths(conditions, case(500, 9))
    assert Conditions("layer = None", "layer").numbers == []


def test_candidates_are_picked_that_go_other_ways_and_no_others():
    conditions = Conditions(CELL.format(condition="len(x) == 256"), "layer")
    usual, same, other = [case(tokens, 2) for tokens in range(9, 19)], case(20, 2), case(256, 2)
    assert telling(conditions, usual, [same, other, same]) == [other]


def test_arithmetic_of_few_values_is_a_condition():
    """No comparison tells these sizes from others, but a product that is 0 for all others does."""
    text = """
def layer(comm, x, topk_ids, topk_weights, gate):
    return x[max(0, 1 - abs(topk_ids.shape[1] - 2)) * min(1, len(x) >> 6) :]
"""
    conditions = Conditions(text, "layer")
    usual, other = [case(tokens, 2) for tokens in range(9, 19)], case(64, 2)
    assert telling(conditions, usual, [case(40, 2), other]) == [other]


def test_a_cell_without_a_number_of_its_own_has_the_usual_cases():
    question = questions.find("expert_load_balance.expert_layer")
    plain = "def expert_layer(comm, x, topk_ids, topk_weights, gate, up, down):\n    return {} * x"
    kinds = [
        [one.kind for one in RanksEvidence(question, plain.format(how), seed=1).hidden_cases()]
        for how in ("1", "(len(x) == 333)")
    ]
    assert NEAR not in kinds[0] and NEAR in kinds[1]
    assert kinds[1][: len(kinds[0])] == kinds[0]
