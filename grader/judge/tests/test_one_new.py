"""Second calls of ranks in which one argument alone is new: what is drawn, and a cache by all other arguments or by a
rank's own fails."""

from dataclasses import replace

import numpy as np
import pytest

from grader import questions
from grader.judge import one_new, rank_values, referee
from grader.judge.one_new import KIND, OF_ONE_RANK
from grader.judge.record import FAIL
from grader.paths import ROOT
from grader.proofs.right import right
from grader.questions import reach
from grader.topics.expert_load_balance.shared import FULL

pytestmark = pytest.mark.usefixtures("no_jails_left")

ALL = [question for question in questions.load().values() if question.kind == "ranks"]
SECOND_CALL = "a hidden case (a second call in the same process"
FOR_TESTS = ("topk_ids", "up", "room", "holders")  # of one question each
STALE = """

KEPT = {{}}
honest = {entry}


def {entry}(comm, {all}):
    known = [np.asarray(one).tobytes() for one in ({others},)]
    key = (comm.rank, *known, np.sort({name}, axis=None).tobytes())
    {name} = KEPT.setdefault(key, {name}{copied})
    return honest(comm, {all})
"""

OWN = """

KEPT = {{}}
honest = {entry}


def {entry}(comm, *own):
    key = (comm.rank, *(np.asarray(one).tobytes() for one in own))
    {body}
"""
RESULT = "return KEPT.setdefault(key, honest(comm, *own))"
LARGE = f"if len(own[0]) < 200: return honest(comm, *own)\n    {RESULT}"
SENT = (
    "true, kept, number = comm.send_rows, KEPT.setdefault(key, {}), iter(range(9)); "
    "comm.send_rows = lambda rows, *split: true(kept.setdefault(next(number), rows), *split); return honest(comm, *own)"
)


def arguments() -> list:
    """Return a row for each argument of each question. Most wait for `make proofs`."""
    found, seen = [], set()
    for question in ALL[::-1]:
        for name in one_new.arguments(question):
            marks = () if name in FOR_TESTS and name not in seen else pytest.mark.slow
            seen.add(name)
            found.append(pytest.param(question, name, marks=marks, id=f"{question.entry}: {name}"))
    return found


def stale(question, name: str) -> str:
    """Return the right answer with an argument that it keeps by all others, and by its own numbers in any order."""
    names = one_new.arguments(question)
    go_with = [name, "gate", "up", "down"] if name == "holders" else [name]
    number = name in ("experts", "room")
    text = STALE if not number else STALE.replace(", np.sort({name}, axis=None).tobytes()", "")
    return right(question.id) + text.format(
        entry=question.entry,
        all=", ".join(names),
        others=", ".join(one for one in names if one not in go_with),
        name=name,
        copied="" if number else ".copy()",
    )


@pytest.mark.skipif(not (ROOT / "solutions").exists(), reason="solutions/, which is not handed out")
@pytest.mark.parametrize("question, name", arguments())
def test_an_argument_that_is_kept_by_all_others_serves_no_other(question, name):
    lost = referee.grade_one(stale(question, name), question, seed=7, eager=False).parts[0]
    assert lost.state == FAIL and lost.came.startswith(SECOND_CALL), lost
    assert lost.look == rank_values.KEPT


@pytest.mark.skipif(not (ROOT / "solutions").exists(), reason="solutions/, which is not handed out")
def test_what_a_few_probed_rows_find_again_serves_no_call_in_which_two_others_are_swapped():
    question = questions.find("expert_load_balance.dispatch_tokens")
    probed = stale(question, "topk_ids").replace(
        "np.sort(topk_ids, axis=None)", "topk_ids[:: max(1, len(topk_ids) // 8)]"
    )
    lost = referee.grade_one(probed, question, seed=502, eager=False).parts[0]
    assert lost.state == FAIL and lost.came.startswith(SECOND_CALL), lost
    assert lost.look == rank_values.KEPT


def by_own() -> list:
    """Return rows of a question and the body of an answer that keeps something by a rank's own arguments. Some wait for
    `make proofs`."""
    found = []
    for question in ALL:
        layer = "gate" in one_new.arguments(question)
        ways = {"its result": RESULT} | ({"a large result": LARGE, "what it sends": SENT} if layer else {})
        found += [
            pytest.param(
                question, body, marks=[pytest.mark.slow] * question.bonus, id=f"{question.entry}: {way}"
            )
            for way, body in ways.items()
        ]
    return found


@pytest.mark.skipif(not (ROOT / "solutions").exists(), reason="solutions/, which is not handed out")
@pytest.mark.parametrize("question, body", by_own())
def test_what_is_kept_by_a_ranks_own_arguments_serves_no_call_in_which_another_ranks_are_new(question, body):
    kinds = [case.kind for case in question.public] + [FULL] * (body == LARGE)
    few = replace(
        question,
        hidden=lambda rng: [one for one in question.hidden(rng) if one.kind in kinds],
        near=None,
        holding=None,
    )
    source = right(question.id) + OWN.format(entry=question.entry, body=body)
    lost = referee.grade_one(source, few, seed=7, eager=False).parts[0]
    assert lost.state == FAIL and lost.came.startswith(SECOND_CALL), lost
    assert lost.look == rank_values.KEPT


@pytest.mark.parametrize("question", ALL, ids=lambda one: one.entry)
@pytest.mark.parametrize("seed", range(3))
def test_each_argument_is_new_alone_and_holds_the_same_numbers(question, seed):
    cases, found = drawn(question, seed)
    names = one_new.arguments(question)
    of_a_rank = [name for name, one in zip(names, cases[0].each[0], strict=True) if one_new.of_a_rank(one)]
    ways = [3 if at < question.of_tokens else 2 for at in range(len(names))]
    kinds = [name for name, count in zip(names, ways, strict=True) for _ in range(count)]
    kinds += [OF_ONE_RANK.format(name) for name in of_a_rank]
    assert [case.kind for _, case, _ in found] == [KIND.format(kind) for kind in kinds]
    for (i, case, _), kind in zip(found, kinds, strict=True):
        for was, now in zip(cases[i].each, case.each, strict=True):
            for name, one, other in zip(names, was, now, strict=True):
                alone = kind in (name, OF_ONE_RANK.format(name))
                assert alone or kind == "holders" or same(one, other)
                assert not isinstance(one, np.ndarray) or same(np.sort(one, None), np.sort(other, None))


@pytest.mark.parametrize("question", ALL, ids=lambda one: one.entry)
@pytest.mark.parametrize("seed", range(3))
def test_each_rank_keeps_all_of_its_own_in_a_call_that_changes_its_result(question, seed):
    cases, found = drawn(question, seed)
    served = set()
    for i, case, refilled in found[-2:]:
        was = cases[i].each
        (rank,) = (r for r, two in enumerate(zip(was, case.each, strict=True)) if not all(map(same, *two)))
        served |= one_new.ranks_told(question, was, case.each) - {rank}
        assert refilled and OF_ONE_RANK.format("") in case.kind
    assert served == {0, 1, 2, 3}


def test_copies_of_an_expert_stay_alike():
    question = next(one for one in ALL if "holders" in one_new.arguments(one))
    cases, found = drawn(question, 0)
    for _, case, _ in found[-3:]:
        holders = case.each[0][3]
        for at in (4, 5, 6):
            for expert, on in enumerate(holders):
                slots = [(rank, holders[:expert, rank].sum()) for rank in np.flatnonzero(on)]
                first, *copies = (case.each[rank][at][slot] for rank, slot in slots)
                assert all(map(same, copies, [first] * len(copies)))


def drawn(question, seed: int) -> tuple[list, list]:
    """Return (cases, second calls of them)."""
    rng = np.random.default_rng(seed)
    cases = [one for one in reach.hidden(question, rng) if min(len(x) for x, *_ in one.each) > 2]
    return cases, list(one_new.calls(question, cases, rng))


def same(one, other) -> bool:
    return np.array_equal(one, other, equal_nan=np.asarray(one).dtype.kind == "f")
