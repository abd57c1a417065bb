"""Bad input becomes a sentence; a locked picture stays shut; steps travel as differences."""

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from widgets.answer import answer, deltas
from widgets.registry import every, find
from widgets.tests.browser.sample import a_third

WALK = find("tile_walk")


def sentence(values, **given) -> str:
    got = answer(WALK, {"view": "v", "revision": 7, "values": values}, **given)
    assert "frames" not in got and got["revision"] == 7
    return got["error"]


@pytest.mark.parametrize(
    "value", [math.nan, math.inf, -1, 0, 1.5, "128", None, True, [128], {}, 10**400, 1e300]
)
def test_a_wrong_number_is_a_sentence_that_names_the_control(value):
    got = answer(WALK, {"values": {"bm": value}})
    assert got["control"] == "bm"
    assert got["error"].startswith("Tile rows (bm) must be a whole number from 16 to 256, got ")


def test_an_unknown_input_and_an_unknown_option():
    assert sentence({"bz": 1}).startswith("input must be one of m, bm,")
    assert sentence({"dtype": "fp12"}).startswith("Element type must be one of fp16, fp8, got 'fp12'")


def test_an_impossible_combination_is_what_the_model_says():
    assert sentence({"machine_name": "A100", "dtype": "fp8"}).startswith("dtype must be one of")


@given(
    st.dictionaries(
        st.sampled_from(["m", "bm", "dtype", "k"]), st.none() | st.floats() | st.text() | st.integers()
    )
)
def test_no_input_raises(values):
    got = answer(WALK, {"values": values})
    assert ("error" in got) != ("frames" in got)
    json.dumps(got, allow_nan=False)


def pulled(simulator) -> set[str]:
    """The inputs that a knob of its opening picture is bound to."""
    frames = simulator.scenes(simulator.run(**simulator.inputs()))
    return {drag["input"] for scene in frames for mark in scene.marks for drag in mark.get("drag", ())}


@pytest.mark.parametrize("simulator", a_third(every(), 1), ids=lambda d: d.id)
def test_while_a_hand_holds_a_knob_the_axes_are_those_it_found(simulator):
    """At every stop of every knob, though the state asks for others; and the state alone has its own again."""
    start = simulator.inputs()
    for control in simulator.controls:
        for value in control.values() if control.name in pulled(simulator) else ():
            values = {**start, control.name: value}
            free, held = (answer(simulator, {"values": values, "axes": axes}) for axes in (None, start))
            assert held.get("error") == free.get("error")
            if not held.get("held"):
                assert held == free
            elif value == start[control.name]:
                assert held["frames"] == free["frames"]


def test_a_locked_picture_gives_nothing_away_before_a_guess():
    got = answer(WALK, {"values": {"m": 1}}, locked=True)
    assert got["locked"] and set(got) == {"view", "revision", "values", "locked"}
    assert got["values"] == WALK.inputs()


@pytest.mark.parametrize("guess", [math.nan, "3", True, math.inf])
def test_a_guess_that_is_no_number_keeps_it_shut(guess):
    got = answer(WALK, {"values": {}, "guess": guess}, locked=True)
    assert "must be a number" in got["error"] and "frames" not in got


def test_a_verdict_is_of_the_state_that_was_asked_about():
    moved = answer(WALK, {"values": {"m": 1}, "guess": 2.7}, locked=True)
    assert moved["verdict"]["near"] and moved["verdict"]["truth"] == "2.49"


def test_a_measurement_it_cannot_show_is_said():
    def said(measured: dict) -> str:
        return answer(find("attention_state"), {"values": {}}, measured)["error"]

    assert said({"seconds": 1.0}).startswith("measured must hold one of bytes_moved")
    assert "must be a positive number" in said({"bytes_moved": -1.0})


@pytest.mark.parametrize("measured", [None, {}])
def test_no_measurement_yet_is_no_error(measured):
    assert answer(WALK, measured=measured)["frames"][0]["beside"] == []


MARK = st.fixed_dictionaries(
    {"id": st.sampled_from("abcde"), "t": st.just("rect"), "x": st.integers(0, 3)},
    optional={"tip": st.text(max_size=2)},
)
FRAME = st.lists(MARK, unique_by=lambda m: m["id"]).flatmap(
    lambda marks: st.builds(
        lambda caption: {"caption": caption, "marks": marks}, st.sampled_from(["", "x", "y"])
    )
)


def rebuilt(changes: list[dict]) -> list[dict]:
    """What the view does with them."""
    out, before, marks = [], {}, {}
    for change in changes:
        marks = {id: mark for id, mark in marks.items() if id not in change["gone"]}
        for mark in change["marks"]:
            marks[mark["id"]] = {**marks.get(mark["id"], {}), **mark}
        if "into" in change:
            ids = list(marks)
            came = [ids.pop() for _ in change["into"]][::-1]
            for place, id in zip(change["into"], came, strict=True):
                ids.insert(place, id)
            marks = {id: marks[id] for id in ids}
        if "order" in change:
            marks = {id: marks[id] for id in change["order"]}
        ways = ("gone", "into", "order", "marks")
        before = {**before, **{k: v for k, v in change.items() if k not in ways}}
        clean = [{k: v for k, v in mark.items() if v is not None} for mark in marks.values()]
        out.append({**before, "marks": clean})
    return out


def test_a_mark_that_comes_between_others_names_its_place_and_no_other_mark():
    first = [{"id": id, "t": "rect", "x": 0} for id in "abc"]
    came = {"id": "d", "t": "rect", "x": 1}
    second = deltas([{"marks": first}, {"marks": [first[0], came, *first[1:]]}])[1]
    assert second == {"marks": [came], "gone": [], "into": [1]}


@given(st.lists(FRAME, min_size=1, max_size=5))
def test_differences_rebuild_the_frames(frames):
    assert rebuilt(deltas(frames)) == frames
