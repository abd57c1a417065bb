"""Second calls of ranks in which one argument alone is new: what is drawn, and a cache by all other arguments fails."""

import numpy as np
import pytest

from grader import questions
from grader.judge import one_new, rank_values, referee
from grader.judge.one_new import KIND
from grader.judge.record import FAIL
from grader.paths import ROOT
from grader.proofs.right import right
from grader.questions import reach

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


@pytest.mark.parametrize("question", ALL, ids=lambda one: one.entry)
@pytest.mark.parametrize("seed", range(3))
def test_each_argument_is_new_alone_and_holds_the_same_numbers(question, seed):
    rng = np.random.default_rng(seed)
    cases = [one for one in reach.hidden(question, rng) if min(len(x) for x, *_ in one.each) > 2]
    found, names = list(one_new.calls(question, cases, rng)), one_new.arguments(question)
    assert [case.kind for _, case, _ in found] == [KIND.format(name) for name in names for _ in range(2)]
    for i, case, _ in found:
        for was, now in zip(cases[i].each, case.each, strict=True):
            for name, one, other in zip(names, was, now, strict=True):
                alone = case.kind == KIND.format(name)
                assert alone or "holders" in case.kind or np.array_equal(one, other, equal_nan=name == "x")
                assert not isinstance(one, np.ndarray) or same_numbers(one, other)


def same_numbers(one: np.ndarray, other: np.ndarray) -> bool:
    return np.array_equal(np.sort(one, None), np.sort(other, None), equal_nan=one.dtype.kind == "f")
