"""What is thought of ahead is what would have been answered, to the byte; and it gives nothing away."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import widgets
from widgets.ahead import KEPT, Answers
from widgets.answer import answer
from widgets.registry import every, find
from widgets.tests.browser.sample import a_third

WALK = find("tile_walk")


def asked(revision: int, values: dict | None, ahead: dict | None, **more) -> dict:
    wish = {"ahead": {"turn": revision, "key": f"step {revision}", "values": ahead}} if ahead else {}
    return {"view": "v", "revision": revision, **({"values": values} if values else {}), **more, **wish}


def states(simulator):
    return st.fixed_dictionaries(
        {control.name: st.sampled_from(control.values()) for control in simulator.controls}
    )


@pytest.mark.parametrize("simulator", a_third(every(), 0), ids=lambda d: d.id)
@settings(max_examples=6)
@given(data=st.data())
def test_a_picture_from_ahead_is_the_one_that_would_have_been_answered(simulator, data):
    """In a walk from state to state, wrong combinations too, wide and narrow."""
    walk = data.draw(st.lists(states(simulator), min_size=2, max_size=4))
    narrow = data.draw(st.booleans())
    answers = Answers(simulator, start=simulator.inputs())
    for revision, (here, there) in enumerate(zip(walk, walk[1:], strict=False), 1):
        told = answers.to(asked(revision, here, there, narrow=narrow))
        plain = {"view": "v", "revision": revision, "narrow": narrow}
        assert json.dumps(told["answer"]) == json.dumps(answer(simulator, {**plain, "values": here}))
        filed = {"turn": revision, "key": f"step {revision}"}
        wanted = {**answer(simulator, {**plain, "values": there}), **filed}
        assert json.dumps(told["ahead"]) == json.dumps(wanted)


def test_a_wish_alone_leaves_the_answer_as_it_is():
    widget = widgets.show("tile_walk")
    before = widget.answer
    widget.request = asked(1, None, {**widget.values, "m": 1})
    assert widget.answer is before and widget.values == WALK.inputs()
    assert widget.ahead["values"]["m"] == 1 and widget.ahead["key"] == "step 1"


def test_python_is_told_of_the_step_that_the_view_knew():
    widget = widgets.show("tile_walk")
    step = {**widget.values, "m": 1}
    widget.request = asked(1, None, step)
    widget.request = asked(2, step, {**step, "m": 2})
    assert widget.values["m"] == 1 and widget.result.reuse_flop_per_element < 2
    assert widget.ahead["values"]["m"] == 2


def test_a_step_thought_of_is_not_computed_again(monkeypatch):
    computed = []
    monkeypatch.setattr("widgets.ahead.answer", lambda d, request, **given: computed.append(request) or {})
    answers = Answers(WALK)
    answers.to(asked(1, {"m": 1}, {"m": 2}))
    answers.to(asked(2, {"m": 2}, {"m": 3}))
    assert [one["values"]["m"] for one in computed] == [1, 2, 3]
    for m in range(4, 4 + KEPT):
        answers.to(asked(3, {"m": m}, None))
    assert len(computed) == 3 + KEPT
    answers.to(asked(4, {"m": 3}, None))
    assert len(computed) == 4 + KEPT, "old pictures are let go"


def test_both_go_in_one_message(monkeypatch):
    widget = widgets.show("tile_walk")
    sent = []
    monkeypatch.setattr(widget, "send_state", lambda key=None: sent.append(set(key)))
    widget.set_state({"request": asked(1, {**widget.values, "m": 1}, {**widget.values, "m": 2})})
    assert sent == [{"answer", "ahead"}]


def test_a_wrong_combination_ahead_is_its_sentence():
    told = Answers(WALK).to(asked(1, None, {"machine_name": "A100", "dtype": "fp8"}))
    assert set(told) == {"ahead"} and told["ahead"]["error"].startswith("dtype must be one of")


def test_a_locked_picture_gives_nothing_away_ahead():
    told = Answers(WALK, start=WALK.inputs(), locked=True).to(asked(1, None, {"m": 1}))
    assert told["ahead"]["locked"] and not {"frames", "verdict"} & set(told["ahead"])
