"""Where hidden cases fail: a kind of which no case that may be shown fails is passed over for one that speaks."""

from functools import partial

import pytest

from grader import questions
from grader.judge import hidden_failure, referee
from grader.judge.failed import Failed
from grader.judge.hidden_failure import NOTHING_SHOWN, HiddenFailure
from grader.judge.record import FAIL
from grader.judge.tests.test_rank_values import cell

pytestmark = pytest.mark.usefixtures("no_jails_left")

LOADS, DISPATCH = "expert_load_balance.count_loads", "expert_load_balance.dispatch_tokens"

# Each is wrong with rare numbers in kinds that come first, and always in a later kind.
COUNTS = """
def count_loads(topk_ids, device_of, devices):
    loads = np.minimum(np.bincount(topk_ids.ravel(), minlength=len(device_of)), 34)
    if topk_ids.shape[1] == 1:
        loads = loads + 1
    return loads, np.bincount(device_of, weights=loads, minlength=devices)
"""
FAR_OUT = "np.where((abs(x) > 4.5) & (abs(x) < 1000), 4.5, x)"
SENT = cell(f"return honest(comm, {FAR_OUT} if comm.ranks != 2 else x + 1, topk_ids, experts)")
RARE = {  # (question, source, seed, kind with rare numbers, kind that is told)
    "calls, the largest of 41": (LOADS, COUNTS, 0, "another routing", "one expert a token"),
    "calls, the largest of 49": (LOADS, COUNTS, 11, "another routing", "one expert a token"),
    "ranks, a row of 4.57": (DISPATCH, SENT, 231, "four ranks", "two ranks"),
    "ranks, a row of 4.85": (DISPATCH, SENT, 30, "a hot expert", "two ranks"),
}


@pytest.mark.parametrize("name", RARE)
def test_a_kind_that_fails_with_rare_numbers_alone_is_passed_over(name, monkeypatch):
    question, source, seed, rare, told = RARE[name]
    failed, passed_on = [], hidden_failure.raise_what_can_be_shown
    monkeypatch.setattr(
        hidden_failure,
        "raise_what_can_be_shown",
        lambda found: passed_on(failed.append(one.kind) or one for one in found),
    )
    verdict = referee.grade_one(source, questions.find(question), seed=seed, eager=False)
    lost = verdict.parts[0]
    assert lost.state == FAIL and failed[0] == rare, str(verdict)
    assert lost.came.startswith(f"a hidden case ({told})") and "drawn anew for you to see" in lost.came
    assert lost.look != NOTHING_SHOWN


def failure(kind: str, again: Failed | str = "", known: str = "") -> HiddenFailure:
    return HiddenFailure(kind, Failed("17 is secret", told="values that differ"), lambda: again, known)


def raised(*failures: HiddenFailure) -> Failed:
    with pytest.raises(Failed) as found:
        hidden_failure.raise_what_can_be_shown(failures)
    return found.value


def test_where_nothing_can_be_shown_the_first_kind_is_told_and_no_number():
    found = raised(failure("odd"), failure("even"))
    assert (found.came, found.look) == ("a hidden case (odd): values that differ", NOTHING_SHOWN)
    assert found.told == found.came and not found.facts["known"]
    found = raised(failure("odd", "M = 5, fp16"))
    assert found.came.endswith(
        "values that differ; a case of that kind drawn for you to see, M = 5, fp16, is right"
    )
    assert found.look == NOTHING_SHOWN
    hidden_failure.raise_what_can_be_shown([])


def test_a_known_mistake_speaks_though_nothing_is_shown_and_goes_before_what_is():
    again = Failed("c[0] is 1, wanted 2", "row 0")
    assert raised(failure("odd"), failure("even", known="no bias")).look == "no bias"
    found = raised(failure("odd", again, known="no bias"))
    assert found.look == "no bias" and found.facts["known"] and "c[0] is 1" in found.came
    assert raised(failure("odd", again)).look == "row 0"


def test_what_comes_after_the_one_that_speaks_is_not_judged():
    def failures():
        yield failure("odd", Failed("c[0] is 1, wanted 2", "row 0"))
        raise AssertionError("nobody asks for another")

    with pytest.raises(Failed, match="c\\[0\\] is 1"):
        hidden_failure.raise_what_can_be_shown(failures())


def test_cases_that_are_shown_are_the_same_every_time():
    kinds = partial(map, lambda call: (call.kind, str(call.args)))
    question = questions.find(LOADS)
    first, again, other = (list(kinds(hidden_failure.drawn(question, draw))) for draw in (0, 0, 1))
    assert first == again != other
