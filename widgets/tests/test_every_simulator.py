"""The rules every simulator keeps, over all that are found: add a simulator, and it is tested here."""

import dataclasses
import json
import re
import subprocess
import sys
from operator import attrgetter

import pytest

from widgets import registry
from widgets.answer import answer, plain_result, spec
from widgets.scene import NARROW, TERM, WIDE, Scene, plain
from widgets.tests import rules

EVERY = registry.every()
each = pytest.mark.parametrize("simulator", EVERY, ids=lambda d: d.id)


def run(simulator, values):
    """Its result, or None for a state that `run` says is impossible; then it must say so in the house's form."""
    try:
        return simulator.run(**simulator.inputs(values))
    except ValueError as problem:
        assert " must be " in str(problem) and ", got " in str(problem) and ";" in str(problem), problem
        return None


@pytest.mark.parametrize("apart", [4, pytest.param(1, marks=pytest.mark.slow)])
@pytest.mark.parametrize("width", [WIDE, NARROW])
@each
def test_scenes_keep_the_rules_and_their_height_while_a_control_moves(simulator, width, apart):
    """The rules of words and marks, of many steps at each fourth and the last: a step differs little from its neighbours."""
    wrong, heights, names = {}, set(), {control.name for control in simulator.controls}
    for label, values in rules.states(simulator):
        result = run(simulator, values)
        if result is None:
            assert label not in simulator.presets, label
            continue
        known = set(rules.numbers(plain_result(result)))
        scenes = simulator.scenes(result, width=width)
        assert {scene.width for scene in scenes} == {width}, "a scene says for which width it was laid out"
        heights |= {scene.height for scene in scenes}
        for i, scene in enumerate(scenes):
            if i % apart and i < len(scenes) - 1:
                continue
            found = rules.problems(scene, known) + rules.ungripped(scene, simulator.inputs(values))
            if width == WIDE:
                found += rules.loose_terms(scene, names)
            if found:
                wrong[f"{label}, step {i}" if len(scenes) > 1 else label] = found
                break
    assert not wrong, json.dumps(wrong, indent=1, ensure_ascii=False)
    assert len(heights) == 1, f"one height for all states, not {sorted(heights)}"
    assert max(heights) <= (430 if width == WIDE else 760), "picture and controls are seen together"


@pytest.mark.parametrize("halts", [3, pytest.param(5, marks=pytest.mark.slow)])
@pytest.mark.parametrize("width", [WIDE, NARROW])
@each
def test_no_words_are_covered_wherever_a_knob_is_pulled(simulator, width, halts):
    wrong = {}
    for label, values in rules.pulled(simulator, halts):
        result = run(simulator, values)
        if result is not None:
            scenes = simulator.scenes(result, width=width)
            some = [*scenes[:: max(1, len(scenes) // 3)], scenes[-1]]  # of many steps, a few
            found = {one for scene in some for one in (*rules.covered(scene), *rules.overlaps(scene))}
            wrong |= {label: sorted(found)} if found else {}
    assert not wrong, json.dumps(wrong, indent=1, ensure_ascii=False)


@each
def test_the_picture_is_in_the_hand_and_linked(simulator):
    scenes = simulator.scenes(simulator.run(**simulator.inputs()))
    assert all(any(mark["t"] == "handle" for mark in scene.marks) for scene in scenes), (
        "what it is about is dragged"
    )
    assert any(TERM.search(a) for a, _ in scenes[0].formula), "the formula has terms"


@each
def test_the_takeaway_follows_the_state(simulator):
    said = {
        s.takeaway
        for v in simulator.presets.values()
        for s in simulator.scenes(simulator.run(**simulator.inputs(v)))
    }
    assert len(said) > 1


@each
def test_declaration(simulator):
    assert simulator.title and simulator.question.endswith("?")
    names = [control.name for control in simulator.controls]
    assert len(set(names)) == len(names)
    assert 1 <= sum(not control.more for control in simulator.controls) <= 4, "at most four controls in view"
    assert 3 <= len(simulator.presets) <= 5
    assert simulator.inputs(next(iter(simulator.presets.values()))) == simulator.inputs(), (
        "the first preset is the start"
    )
    for control in simulator.controls:
        assert control.check(control.default) == control.default
        for stop in control.stops:
            assert control.check(stop) == stop
    assert bool(simulator.scene) != bool(simulator.stepper), "scene or stepper, one of the two"
    assert set(simulator.measures.values()).isdisjoint({""})


@each
def test_result_is_frozen_plain_numbers_and_pure(simulator):
    inputs = simulator.inputs()
    result = simulator.run(**inputs)
    with pytest.raises(dataclasses.FrozenInstanceError):
        setattr(result, dataclasses.fields(result)[0].name, None)
    assert simulator.run(**inputs) == result
    json.dumps(plain_result(result), allow_nan=False)


@each
def test_steps(simulator):
    if not simulator.stepper:
        return
    result = simulator.run(**simulator.inputs())
    frames = simulator.scenes(result)
    assert 2 <= len(frames) <= 130
    assert 0 <= simulator.stepper.start(result) < len(frames)
    assert all(frame.caption.endswith(".") for frame in frames), "each step says what happens, in a sentence"


@each
def test_prediction_asks_for_a_number_of_the_result(simulator):
    asked = simulator.prediction
    if asked is None:
        return
    truth = attrgetter(asked.answer)(simulator.run(**simulator.inputs()))
    assert isinstance(truth, int | float) and not isinstance(truth, bool)
    assert asked.question.endswith("?")
    shut = answer(simulator, locked=True)
    assert shut["locked"] and "frames" not in shut
    right = answer(simulator, {"values": simulator.inputs(), "guess": truth}, locked=True)
    assert right["verdict"]["near"] and right["frames"]
    wrong = answer(simulator, {"values": simulator.inputs(), "guess": truth * 3 + 1}, locked=True)
    assert not wrong["verdict"]["near"]


@each
def test_a_measurement_stands_beside_the_model(simulator):
    for key in simulator.measures:
        plain = simulator.scenes(simulator.run(**simulator.inputs()))[-1]
        beside = simulator.scenes(simulator.run(**simulator.inputs()), {key: 1.0})[-1]
        assert isinstance(beside, Scene) and beside.beside and not plain.beside
        assert any(mark["role"] == "measured" for mark in beside.marks)


@each
def test_messages_are_json_and_small(simulator):
    message = json.dumps(answer(simulator), allow_nan=False)
    assert len(message) < (120_000 if simulator.stepper else 40_000)
    json.dumps(spec(simulator), allow_nan=False)


@each
def test_every_text_a_view_writes_is_a_role_or_size_it_has(simulator):
    ids_of = [
        {mark["id"] for mark in simulator.scenes(simulator.run(**simulator.inputs(values)))[0].marks}
        for values in simulator.presets.values()
    ]
    shared = set.intersection(*ids_of)
    assert len(shared) >= 3, "ids stay the same from state to state, so that marks move and do not blink"


def test_models_need_neither_numpy_nor_a_notebook():
    """Every simulator runs on the standard library alone: in a static page there is nothing else."""
    code = (
        "import sys\n"
        "for name in ('numpy', 'torch', 'triton', 'anywidget', 'ipywidgets', 'matplotlib', 'IPython'):\n"
        "    sys.modules[name] = None\n"
        "from widgets.registry import every\n"
        "from widgets.answer import answer, spec\n"
        "for one in every():\n"
        "    assert 'frames' in answer(one) and spec(one), one.id\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_simulators_are_found():
    assert {"gemm_tiling.tile_walk", "gemm_tiling.fp8_accumulator"} <= {d.id for d in EVERY}


@each
def test_what_was_to_be_predicted_is_in_the_picture_that_opens(simulator):
    """A verdict ends with "find out why below", so its number must be there, among the figures, words or marks."""
    if not simulator.prediction:
        return
    result = simulator.run(**simulator.inputs())
    scenes = simulator.scenes(result)
    opens = scenes[simulator.stepper.start(result) if simulator.stepper else 0]
    truth = simulator.prediction.show(attrgetter(simulator.prediction.answer)(result))
    texts = [one.text for one in opens.figures] + [m["s"] for m in opens.marks if m["t"] == "text"]
    texts += [opens.takeaway, opens.caption, *(plain(words) for pair in opens.formula for words in pair)]
    assert any(re.search(rf"(?<![\d.,]){re.escape(truth)}(?![\d])", words) for words in texts), truth
