"""Wrong dispatches and layers lose what they should and are told why; right ones in other forms lose nothing.

Whose values are right is judged in every case and counted: of those here one for each part that a question can lose and
one right form of each question; `make proofs` takes all.
"""

from collections import Counter

import numpy as np
import pytest

from grader import questions
from grader.judge.record import PASS
from grader.places import ROOT
from grader.proofs import wrong as zoo
from grader.proofs.right import edited, right
from grader.topics.expert_load_balance.dispatch_tokens import question
from grader.topics.expert_load_balance.expert_layer.question import QUESTION
from grader.topics.expert_load_balance.replicated_layer import question
from grader.topics.expert_load_balance.replicated_layer.cases import most_received

if not (ROOT / "solutions").exists():
    pytest.skip("solutions/, which is not handed out", allow_module_level=True)

pytestmark = pytest.mark.usefixtures("no_jails_left")

ALL = (*ranks.QUESTIONS, *replicas.QUESTIONS)


def sampled(tables: dict, part_of=lambda row: None) -> list:
    """All rows of the tables; those are marked that wait for `make proofs`."""
    found = []
    for question, rows in tables.items():
        wait = set()
        for part in {part_of(row) for row in rows.values()} - {"values"}:
            names = [name for name, row in rows.items() if part_of(row) == part]
            wait |= {*names} - {*zoo.sample(names, 1)}
        for name in rows:
            marks = pytest.mark.slow if name in wait else ()
            found.append(pytest.param(question, name, marks=marks, id=f"{question}: {name}"))
    return found


@pytest.mark.parametrize("question, name", sampled(WRONG, part_of=lambda row: row[0]))
def test_a_wrong_answer_loses_its_part_and_is_told_why(question, name):
    part, edits, told = WRONG[question][name]
    row = questions.find(question)
    verdict = zoo.judged(row, edited(right(question), edits))
    lost = {p.name: p for p in verdict.parts}[part]
    assert lost.state == "FAIL", verdict
    assert part == "values" or verdict.parts[0].state == PASS, verdict
    known = (
        {m.name: m.sentence for m in row.mistakes}
        if part == "values"
        else {n: s for n, (s, _) in row.habits.items()}
    )
    assert not told or lost.look == known[told], verdict


def test_results_that_are_nearly_right_are_told_so():
    """And not by the ranks of a token's experts, which is where wrong sums come from."""
    _, edits, _ = WRONG[QUESTION.id]["in 16 bits"]
    values = zoo.judged(QUESTION, edited(right(QUESTION.id), edits)).parts[0]
    assert values.state == "FAIL" and "rounded on its way" in values.look, values.look


@pytest.mark.parametrize("question, name", sampled(RANKS_FORMS))
def test_a_right_form_has_all_points(question, name):
    edits = RANKS_FORMS[question][name]
    row = questions.find(question)
    verdict = zoo.judged(row, edited(right(question), edits))
    assert verdict.verdict == PASS and verdict.points == row.points, verdict


def test_every_mistake_is_made():
    for question in ALL:
        made = Counter(told for part, _, told in WRONG[question.id].values() if part == "values")
        assert {mistake.name for mistake in question.mistakes} <= set(made), question.id


@pytest.mark.parametrize("seed", range(12))
def test_budgets_hold_what_must_travel_and_no_wasteful_habit(seed):
    for question in ranks.QUESTIONS:
        per = question is question.QUESTION
        over = 0
        for case in question.hidden(np.random.default_rng(seed)):
            experts = case.each[0][2] // len(case.each) if per else len(case.each[0][3])
            least = x.between(case.each, experts)
            assert (question.most_bytes(case.each) >= least.sum(axis=1) * x.row_bytes(case.each)[0]).all()
            habits = [spends(case.each) for _, spends in question.habits.values()]
            over += np.array([(habit > question.most_bytes(case.each)).any() for habit in habits])
        assert over.all(), question.id


@pytest.mark.parametrize("seed", range(12))
def test_copies_in_turn_are_allowed_and_the_first_copy_is_not(seed):
    over = 0
    for case in question.QUESTION.hidden(np.random.default_rng(seed)):
        most = most_received(case.each)
        assert (received(case.each, turns=True) <= most).all()
        over += (received(case.each, turns=False) > most).any()
    assert over


def received(each, turns: bool) -> np.ndarray:
    """Bytes that each rank receives where the first copy is always chosen, or one by the token's number."""
    table = np.zeros((len(each), len(each)), int)
    for rank, (_, chosen, _, holders, *_) in enumerate(each):
        for number, token in enumerate(chosen):
            copies = [np.flatnonzero(holders[e]) for e in token if not holders[e, rank]]
            for place in {int(c[number % len(c) if turns else 0]) for c in copies}:
                table[rank, place] += 1
    width, top_k = each[0][0].shape[1], each[0][1].shape[1]
    return table.sum(axis=0) * (4 * width + 12 * top_k) + table.sum(axis=1) * 4 * width + 8 * (len(each) - 1)
