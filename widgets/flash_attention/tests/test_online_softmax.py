"""The trace against numpy's softmax over the row, in any order and any tiling."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernels.flash_attention import cost
from widgets.flash_attention.online_softmax import PLACES
from widgets.registry import find
from widgets.scene import NARROW, WIDE

ONLINE = find("online_softmax")
STATES = st.fixed_dictionaries(
    {
        "order": st.sampled_from(["given", "rising", "falling"]),
        "tile": st.sampled_from([1, 2, 3, 4, 5, 8, 16]),
        "scale": st.floats(0.25, 2),
        "shift": st.sampled_from([0, 10, 50, 100]),
    }
)


def run(**inputs):
    return ONLINE.run(**ONLINE.inputs(inputs))


def softmax_mean(scores, values):
    weights = np.exp(np.asarray(scores) - np.max(scores))
    return float(weights @ np.asarray(values) / weights.sum())


@given(STATES)
def test_after_each_tile_the_state_is_that_of_the_keys_seen(inputs):
    r = run(**inputs)
    for i, state in enumerate(r.states):
        seen = slice(0, (i + 1) * r.tile)
        scores = np.array(r.scores[seen])
        assert state.m == scores.max()
        assert state.l == pytest.approx(np.exp(scores - scores.max()).sum())
        assert state.output == pytest.approx(softmax_mean(scores, r.values[seen]))
        assert 0 <= state.rescale <= 1


@given(STATES)
def test_order_tiling_and_shift_change_nothing_in_the_end(inputs):
    plain = run(scale=inputs["scale"])
    r = run(**inputs)
    assert r.output == pytest.approx(plain.output, rel=1e-9)
    assert r.difference < 1e-9 and r.whole_row_output == pytest.approx(r.output)


@given(st.sampled_from([1, 2, 4, 8]))
def test_the_order_decides_how_often_it_rescales(tile):
    falling, rising = run(order="falling", tile=tile), run(order="rising", tile=tile)
    assert all(state.rescale == 1 for state in falling.states[1:])
    assert falling.first_shrink == 1
    grows = [new.m > old.m for old, new in zip(rising.states, rising.states[1:], strict=False)]
    assert [s.rescale < 1 for s in rising.states[1:]] == grows and any(grows)


def test_shifted_scores_would_overflow_and_it_says_so():
    r = run(shift=100)
    with np.errstate(over="ignore"):
        assert np.isinf(np.exp(np.float32(max(r.scores))))
    assert "beyond fp32" in ONLINE.scenes(r)[0].warning
    assert not ONLINE.scenes(run(shift=50))[0].warning


def test_it_opens_where_the_answer_is_the_whole_rows_and_keeps_each_tiles_factor():
    r = run()
    scene = ONLINE.scenes(r)[ONLINE.stepper.start(r)]
    marks = {mark["id"]: mark for mark in scene.marks}
    assert "the same" in marks["o-name"]["s"]
    assert [marks[f"tile-{i}"]["s"] for i in range(4)] == [
        "tile 0",
        "tile 1, factor 0.135",
        "tile 2, factor 1.000",
        "tile 3, factor 0.368",
    ]
    assert r.first_shrink == pytest.approx(math.exp(3 - 5))
    assert run(tile=1).first_shrink == r.first_shrink  # key by key: 3, 2, 1, 0.5, and then 5


@pytest.mark.parametrize("width", [WIDE, NARROW])
def test_the_values_under_the_weights_give_the_answer_as_drawn(width):
    """A reader who multiplies each bar's height by the number under it finds the answer."""
    r = run()
    for step, scene in enumerate(ONLINE.scenes(r, width=width)):
        marks = {mark["id"]: mark for mark in scene.marks}
        read = [key for key in range(16) if marks[f"value-{key}"]["s"]]
        assert read == list(range((step + 1) * r.tile))
        bars, values = (
            [marks[f"weight-{key}"]["h"] for key in read],
            [float(marks[f"value-{key}"]["s"]) for key in read],
        )
        assert np.dot(bars, values) / sum(bars) == pytest.approx(r.states[step].output, abs=0.01)


def test_the_warning_names_the_score_that_is_m():
    r = run(shift=100)
    for state, scene in zip(r.states, ONLINE.scenes(r), strict=True):
        assert scene.warning.startswith(f"exp({state.m:g}) is beyond fp32")
    late = run(shift=50, scale=2, order="rising")  # up to 62: no overflow
    assert not any(scene.warning for scene in ONLINE.scenes(late))


def test_figure_formula_and_table_say_the_same_factor():
    for inputs in ({}, {"tile": 16}, {"tile": 1, "order": "rising"}):
        r = run(**inputs)
        for step, (state, scene) in enumerate(zip(r.states, ONLINE.scenes(r), strict=True)):
            factor = scene.figures[1].text
            assert factor == (f"{state.rescale:.3f}" if step else "none")
            assert scene.formula[0][1].endswith(f" {factor}" if step else "nothing to rescale")
            assert scene.table.rows[step][3] == (state.rescale if step else "–")


@pytest.mark.parametrize("width", [WIDE, NARROW])
def test_the_sum_stands_at_the_bars_that_it_sums(width):
    r = run()
    for step, scene in enumerate(ONLINE.scenes(r, width=width)):
        marks = {m["id"]: m for m in scene.marks}
        full = marks["weights-axis"]["y"] - PLACES[width == WIDE].weights.y
        total = sum(marks[f"weight-{key}"]["h"] for key in range((step + 1) * r.tile))
        assert float(marks["l-name"]["s"]) == pytest.approx(total / full, abs=0.01)
        assert marks["l-name"]["s"] == scene.figures[2].text


@pytest.mark.parametrize("width", [WIDE, NARROW])
@pytest.mark.parametrize("shift, scale", [(0, 1), (50, 2), (100, 1), (100, 0.25)])
def test_where_an_exponential_is_beyond_fp32_each_key_that_is_read_says_so(shift, scale, width):
    r = run(shift=shift, scale=scale)
    for step, scene in enumerate(ONLINE.scenes(r, width=width)):
        marks = {m["id"]: m for m in scene.marks}
        read = range((step + 1) * r.tile)
        with np.errstate(over="ignore"):
            beyond = [bool(np.isinf(np.exp(np.float32(r.scores[key])))) for key in read]
        assert [f"infinite-{key}" in marks and marks[f"infinite-{key}"]["s"] == "∞" for key in read] == beyond
        assert not any(f"infinite-{key}" in marks for key in range(len(read), 16))
        assert ("without-m" in marks) == any(beyond)


def test_bars_are_the_weights():
    r = run()
    for step, scene in enumerate(ONLINE.scenes(r)):
        bars = [m for m in scene.marks if m["id"].startswith("weight-")]
        high = {m["id"]: m["h"] for m in bars if "tip" in m}
        assert {m["h"] for m in bars if "tip" not in m} <= {0}, "a key that is not read yet counts nothing"
        assert len(high) == (step + 1) * r.tile
        full = max(high.values())
        for key in range(len(high)):
            want = math.exp(r.scores[key] - r.states[step].m)
            assert high[f"weight-{key}"] / full == pytest.approx(want, abs=0.005)


def test_keys_that_do_not_fill_the_last_tile_still_count():
    states = cost.online_trace([(1.0, 2.0), (3.0,)], [(1.0, 2.0), (3.0,)])
    assert states[-1].output == pytest.approx(softmax_mean([1, 2, 3], [1, 2, 3]))


@given(st.sampled_from([score / 2 for score in range(15)]), STATES)
def test_a_pulled_score_moves_its_bar_and_the_answer_stays_that_of_the_whole_row(score, inputs):
    r = run(score=score, **inputs)
    assert r.scores[r.pulled] == pytest.approx(inputs["scale"] * score + inputs["shift"])
    assert r.output == pytest.approx(softmax_mean(r.scores, r.values))
    marks = {mark["id"]: mark for mark in ONLINE.scenes(r)[0].marks}
    bar, knob = marks[f"score-{r.pulled}"], marks["pull-score"]
    assert knob["x"] == pytest.approx(bar["x"] + bar["w"] / 2, abs=0.1)
    assert knob["y"] == pytest.approx(bar["y"], abs=2.1), "a score of 0 keeps a bar of 2 units"


def test_a_key_pulled_above_all_others_is_the_last_to_rescale():
    r = run(score=7)
    assert [state.m for state in r.states] == [3, 7, 7, 7]
    assert r.states[3].rescale == 1 and r.states[1].rescale == pytest.approx(math.exp(3 - 7))


@given(STATES)
def test_without_the_factor_the_sums_are_those_of_a_kernel_that_forgets_it(inputs):
    """Written as such a kernel: one maximum that follows, and sums that are never scaled again."""
    r = run(**inputs)
    m, total, weighted = -math.inf, 0.0, 0.0
    for at, wrong in zip(range(0, len(r.scores), r.tile), r.unscaled_outputs, strict=True):
        tile = range(at, min(at + r.tile, len(r.scores)))
        m = max(m, *(r.scores[i] for i in tile))
        total += sum(math.exp(r.scores[i] - m) for i in tile)
        weighted += sum(math.exp(r.scores[i] - m) * r.values[i] for i in tile)
        assert wrong == pytest.approx(weighted / total)


@pytest.mark.parametrize("width", [WIDE, NARROW])
@pytest.mark.parametrize("inputs", [{}, {"tile": 1, "order": "rising"}, {"order": "falling"}])
def test_output_whole_row_and_the_answer_without_the_factor_stand_on_one_line_of_numbers(inputs, width):
    r = run(**inputs)
    for step, scene in enumerate(ONLINE.scenes(r, width=width)):
        marks = {mark["id"]: mark for mark in scene.marks}
        axis, low, high = (
            marks["output-axis"],
            float(marks["output-low"]["s"]),
            float(marks["output-high"]["s"]),
        )

        def read(x, axis=axis, low=low, high=high):
            return low + (x - axis["x"]) / (axis["x2"] - axis["x"]) * (high - low)

        assert read(marks["dot"]["x"]) == pytest.approx(r.states[step].output, abs=0.001)
        assert read(marks["whole"]["x"]) == pytest.approx(r.whole_row_output, abs=0.001)
        wrong = r.unscaled_outputs[step]
        assert ("wrong-name" in marks) == (abs(wrong - r.states[step].output) > 5e-4)
        if "wrong-name" in marks:
            assert read(marks["wrong-a"]["x"] + 5) == pytest.approx(wrong, abs=0.001)
        assert ("the same" in marks["o-name"]["s"]) == (step == len(r.states) - 1)


@pytest.mark.parametrize("width", [WIDE, NARROW])
def test_this_tile_s_scores_all_have_their_number(width):
    for state in ({}, {"order": "falling"}, {"order": "rising", "tile": 1}, {"tile": 2}):
        r = run(**state)
        for step, scene in enumerate(ONLINE.scenes(r, width=width)):
            named = {m["id"] for m in scene.marks if m["t"] == "text"}
            for key in range(step * r.tile, (step + 1) * r.tile):
                assert f"score-{key}-name" in named, (state, step, key)


def test_the_first_tile_has_no_factor():
    for state in ({}, {"tile": 16}):
        first = ONLINE.scenes(run(**state))[0]
        assert "0.000" not in {one.text for one in first.figures} and "nothing came before" in first.summary


@pytest.mark.parametrize("width", [340, 720])
@pytest.mark.parametrize("preset", ONLINE.presets)
def test_nothing_of_a_tile_is_shown_before_it_is_read(preset, width):
    """But for the key in one's hand, no score or weight of a later tile has a height or a number."""
    r = ONLINE.run(**ONLINE.inputs(ONLINE.presets[preset]))
    for step, scene in enumerate(ONLINE.scenes(r, width=width)):
        marks = {m["id"]: m for m in scene.marks}
        for key in range((step + 1) * r.tile, len(r.scores)):
            assert marks[f"weight-{key}"]["h"] == 0
            if key != r.pulled:
                assert marks[f"score-{key}"]["h"] == 0 and marks[f"score-{key}-name"]["s"] == ""
