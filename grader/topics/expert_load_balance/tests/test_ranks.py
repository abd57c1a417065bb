"""Wrong dispatches and layers lose what they should and are told why; right ones in other forms lose nothing.

Here of each question three forms with wrong values, one for each other part that it can lose and one right form;
`make proofs` takes all.
"""

import numpy as np
import pytest

from grader import questions
from grader.judge.ranks_evidence import TWICE, RanksEvidence
from grader.judge.record import PASS
from grader.paths import ROOT
from grader.proofs import wrong as zoo
from grader.proofs.honest import unusual
from grader.proofs.right import edited, right
from grader.topics.expert_load_balance.fixed_dispatch.cases import by_pairs
from grader.topics.expert_load_balance.replicated_layer.cases import ONE_PROMPT, most_received
from grader.topics.expert_load_balance.shared import OWN, bytes_between, row_bytes

if not (ROOT / "solutions").exists():
    pytest.skip("solutions/, which is not handed out", allow_module_level=True)

pytestmark = pytest.mark.usefixtures("no_jails_left")

ALL = [question for question in questions.load().values() if question.kind == "ranks"]
DISPATCH, LAYER, REPLICATED, FIXED = ALL


def sampled(rows_of, part_of=lambda row: None) -> list:
    """Rows of all questions; those are marked that wait for `make proofs`."""
    found = []
    for question in ALL:
        rows, wait = rows_of(question), set()
        for part in {part_of(row) for row in rows.values()}:
            names = [name for name, row in rows.items() if part_of(row) == part]
            wait |= {*names} - {*zoo.sample(names, 3 if part == "values" else 1)}
        for name in rows:
            marks = pytest.mark.slow if name in wait else ()
            found.append(pytest.param(question, name, marks=marks, id=f"{question.id}: {name}"))
    return found


@pytest.mark.parametrize("question, name", sampled(zoo.table, part_of=lambda row: row.part))
def test_a_wrong_answer_loses_its_part_and_is_told_why(question, name):
    assert zoo.wrong(question, name) == ""


def test_results_that_are_nearly_right_are_told_so():
    """And not by the ranks of a token's experts, which is where wrong sums come from."""
    values = zoo.judged(LAYER, zoo.source(LAYER, zoo.table(LAYER)["in 16 bits"])).parts[0]
    assert values.state == "FAIL" and "rounded on its way" in values.look, values.look


def test_a_plan_kept_by_how_many_copies_there_are_serves_no_other_placement():
    """In a second call two experts have changed places, so that every expert and every rank has as many copies."""
    first = "    place = np.full(topk_ids.shape, comm.rank)\n"
    by_sums = "    key = (holders.shape, holders.sum(0).tobytes(), holders.sum(1).tobytes())\n"
    kept = edited(
        right(REPLICATED.id), [(first, f"{by_sums}    holders = PLANS.setdefault(key, holders)\n{first}")]
    )
    lost = zoo.judged(REPLICATED, f"PLANS = {{}}\n\n\n{kept}").parts[0]
    assert lost.state == "FAIL" and lost.came.startswith(f"a hidden case ({TWICE})"), lost


@pytest.mark.parametrize("question, name", sampled(unusual))
def test_a_right_form_has_all_points(question, name):
    verdict = zoo.judged(question, edited(right(question.id), unusual(question)[name]))
    assert verdict.verdict == PASS and verdict.points == question.points, verdict


def test_every_mistake_is_made():
    for question in ALL:
        rows = [row for row in zoo.table(question).values() if row.part == "values"]
        said = {mistake.name for mistake in question.mistakes if mistake.sentence}
        assert said <= {row.told_as or row.name for row in rows}, question.id


@pytest.mark.parametrize("seed", range(12))
def test_budgets_hold_what_must_travel_and_no_wasteful_habit(seed):
    for question in (DISPATCH, LAYER):
        per = question is DISPATCH
        over = 0
        for case in question.hidden(np.random.default_rng(seed)):
            experts = case.each[0][2] // len(case.each) if per else len(case.each[0][3])
            least = bytes_between(case.each, experts)
            assert (question.most_bytes(case.each) >= least.sum(axis=1) * row_bytes(case.each)[0]).all()
            habits = [spends(case.each) for _, spends in question.habits.values()]
            over += np.array([(habit > question.most_bytes(case.each)).any() for habit in habits])
        assert over.all(), question.id


@pytest.mark.parametrize("seed", range(12))
def test_fixed_room_is_enough_for_every_token_and_too_little_for_every_pair(seed):
    cases, spare = FIXED.hidden(np.random.default_rng(seed)), []
    for case in cases:
        room = case.each[0][3]
        spare.append(room - max(len(x) for x, *_ in case.each))
        if len(case.each) == 1:
            continue  # nothing travels
        one_each = case.each[0][1].shape[1] == 1  # then a token is a pair
        habits = [
            spends(case.each) for _, spends in FIXED.habits.values() if not (one_each and spends is by_pairs)
        ]
        assert habits and all((habit > FIXED.most_bytes(case.each)).all() for habit in habits)
    assert min(spare) == 0 < max(spare), "a rank's room may be full, and no size that is known tells it"


@pytest.mark.parametrize("seed", range(12))
def test_copies_in_turn_are_allowed_and_the_first_copy_is_not(seed):
    over = 0
    for case in REPLICATED.hidden(np.random.default_rng(seed)):
        most = most_received(case.each)
        assert (received(case.each, by_number) <= most).all()
        over += (received(case.each, first) > most).any()
    assert over


def test_a_part_of_the_batch_for_each_copy_is_no_turn():
    """Tokens of one prompt that choose alike all go to one copy then."""
    case = next(c for c in REPLICATED.hidden(np.random.default_rng(5)) if c.kind == ONE_PROMPT)
    assert (received(case.each, in_parts) > most_received(case.each)).any()


def first(number: int, tokens: int, copies: int) -> int:
    return 0


def by_number(number: int, tokens: int, copies: int) -> int:
    return number % copies


def in_parts(number: int, tokens: int, copies: int) -> int:
    return number * copies // tokens


def received(each, choose) -> np.ndarray:
    """Bytes that each rank receives where `choose` tells which copy a token goes to."""
    table = np.zeros((len(each), len(each)), int)
    for rank, (_, topk_ids, _, holders, *_) in enumerate(each):
        for number, token in enumerate(topk_ids):
            copies = [np.flatnonzero(holders[e]) for e in token if not holders[e, rank]]
            for place in {int(c[choose(number, len(topk_ids), len(c))]) for c in copies}:
                table[rank, place] += 1
    width, top_k = each[0][0].shape[1], each[0][1].shape[1]
    return table.sum(axis=0) * (4 * width + 12 * top_k) + table.sum(axis=1) * 4 * width + 8 * (len(each) - 1)


def test_rows_hold_the_numbers_of_a_cell_and_the_numbers_whose_bits_they_are():
    mark = 0x7FC12345
    text = f"def fixed_dispatch(comm, x, topk_ids, experts, room):\n    return {mark}, -7.25e-9"
    hidden = RanksEvidence(FIXED, text, seed=1).hidden_cases()
    x = np.concatenate([x.ravel() for one in hidden if one.kind == OWN for x, *_ in one.each])
    assert mark in x.view(np.uint32) and np.float32(-7.25e-9) in x
