"""Block scales as the explorer shows them, against quantizing each block on its own."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernels.quantization_layouts import cost
from kernels.tiny_model.kept import KEPT
from widgets.quantization_layouts.block_scales import COUNT, OUTLIER_AT, TOP, TRAINED, trained_units
from widgets.registry import find
from widgets.scene import NARROW, WIDE
from widgets.site.build import ROOT
from widgets.tests.rules import covered

SCALES = find("block_scales")
FREE = [name for name, form in cost.BLOCK_FORMATS.items() if form.fixed_group is None]


def blocks(**inputs):
    return SCALES.run(**SCALES.inputs({"numbers": "bell", **inputs}))


@given(st.sampled_from(list(cost.BLOCK_FORMATS)), st.sampled_from([4, 8, 16, 32, 64]), st.integers(1, 30))
def test_errors_are_those_of_the_ordinary_numbers(name, group, outlier):
    r = blocks(format_name=name, group=group, outlier=outlier)
    values, kept = np.array(r.values), np.array(r.blocks.values)
    ordinary = np.arange(COUNT) != OUTLIER_AT
    assert r.size == pytest.approx(np.sqrt(np.mean(values[ordinary] ** 2)))
    off = (values - kept)[ordinary]
    assert r.blocks.error_share == pytest.approx(np.sqrt(np.mean(off**2)) / r.size)
    assert r.blocks.zeros == np.sum(kept[ordinary] == 0)
    assert len(r.blocks.block_errors) == COUNT // r.blocks.group
    for b, error in enumerate(r.blocks.block_errors):
        inside = ordinary & (np.arange(COUNT) // r.blocks.group == b)
        assert error == pytest.approx(np.sqrt(np.mean((values - kept)[inside] ** 2)) / r.size)


@given(st.sampled_from(FREE), st.sampled_from([4, 8, 16, 32]))
def test_a_block_without_the_outlier_does_not_know_of_it(name, group):
    calm, wild = (blocks(format_name=name, group=group, outlier=times) for times in (1, 30))
    for b, (before, after) in enumerate(zip(calm.blocks.block_errors, wild.blocks.block_errors, strict=True)):
        if b != OUTLIER_AT // group:
            assert after == pytest.approx(before * calm.size / wild.size)


@given(st.sampled_from(list(cost.BLOCK_FORMATS)))
def test_dots_lie_on_the_ladder_of_their_block(name):
    r = blocks(format_name=name)
    for i, kept in enumerate(r.blocks.values):
        if i != OUTLIER_AT and abs(kept) <= 3 * r.size:
            assert any(kept == level for level in r.blocks.levels[i // r.blocks.group])


def test_the_trained_weights_are_the_tiny_model_s():
    kept = json.loads(TRAINED.read_text(encoding="utf-8"))
    with np.load(KEPT / "weights.npz") as found:
        expert = found["blocks.0.moe.up"][3]
    assert np.array_equal(np.array(kept["weights"], np.float16), expert.T[kept["units"]])
    assert "blocks.0.moe.up, expert 3" in kept["source"] and len(trained_units()) == 16


def test_the_lesson_says_what_the_simulator_finds():
    r = blocks(numbers="trained", outlier=5)
    words = " ".join((ROOT / "course/02_quantization_layouts/b_codes.md").read_text(encoding="utf-8").split())
    trained, bell = f"{r.many.trained:.1%}", f"{r.many.bell:.1%}"
    found = (
        f"When 1,024 weights of this model are quantized to int4 in groups of 16, their error is {trained}."
    )
    assert f"{found} For 1,024 normally distributed numbers it is {bell}," in words


def test_trained_weights_stay_as_trained_until_the_outlier_is_pulled():
    r = blocks(numbers="trained", outlier=5)
    assert r.values == trained_units()[0] and r.times == pytest.approx(4.96, abs=0.005)
    assert r.values[r.at] == max(r.values)
    pulled = blocks(numbers="trained", outlier=20)
    assert pulled.values[r.at] == pytest.approx(20 * r.size) and pulled.size == r.size
    assert [v for i, v in enumerate(pulled.values) if i != r.at] == [
        v for i, v in enumerate(r.values) if i != r.at
    ]
    assert pulled.blocks.error_share > 2 * r.blocks.error_share


@pytest.mark.parametrize("group", [4, 16, 64])
def test_the_errors_of_many_weights_against_numpy(group):
    r = blocks(group=group)
    drawn = {"bell": np.array(cost.bell_values(1024)), "trained": np.array(trained_units()).ravel()}
    for numbers, values in drawn.items():
        rows = values.reshape(-1, group)
        scale = (np.abs(rows).max(1, keepdims=True) / 7).astype(np.float16).astype(float)
        error = np.sqrt(np.mean((np.rint(rows / scale) * scale - rows) ** 2) / np.mean(values**2))
        assert getattr(r.many, numbers) == pytest.approx(error, rel=0.01)
    assert [row[-1] for row in SCALES.scene(r).table.rows[2:4]] == list(r.many)


def test_one_scale_for_all_is_the_same_as_a_block_of_64():
    r = blocks(group=64)
    assert r.blocks == r.one and r.gain == 1


@pytest.mark.parametrize("name", list(cost.BLOCK_FORMATS))
def test_both_panels_hold_the_same_elements_so_that_only_the_scale_differs(name):
    r = blocks(format_name=name, group=16)
    one, own = (cost.BLOCK_FORMATS[kept.format] for kept in (r.one, r.blocks))
    assert (one.levels, one.bits) == (own.levels, own.bits) and r.one.group == COUNT
    assert r.one.format == r.blocks.format == name and r.blocks.group == 16


@pytest.mark.parametrize("name", list(cost.BLOCK_FORMATS))
def test_what_is_counted_as_lost_is_not_none_where_the_error_is_as_large_as_the_numbers(name):
    r = blocks(format_name=name, outlier=20)
    for lost, kept in zip(SCALES.scene(r).figures, (r.one, r.blocks), strict=False):
        assert kept.error_share < 0.7 or lost.value > 8, (lost, kept.error_share)
    if name.startswith("codebook"):
        off = np.abs(np.array(r.values) - np.array(r.one.values))[np.arange(COUNT) != OUTLIER_AT]
        assert r.one.far == np.sum(off > r.size / 2) and "moved by half" in SCALES.scene(r).figures[0].label


def test_the_outlier_s_own_block_is_not_said_to_be_saved():
    r = blocks()
    own = r.blocks.block_errors[OUTLIER_AT // 16]
    assert own > 0.7 and f"{own:.0%}" in SCALES.scene(r).takeaway


def test_more_bits_less_error_and_a_larger_outlier_more():
    assert blocks(format_name="int8").one.error_share < blocks().one.error_share / 5
    errors = [blocks(outlier=times).one.error_share for times in (3, 6, 12, 24)]
    assert errors == sorted(errors)


@pytest.mark.parametrize("width", [WIDE, NARROW])
def test_a_larger_outlier_has_a_longer_stem_that_ends_at_its_knob(width):
    tops = []
    for outlier in range(1, 31):
        (scene,) = SCALES.scenes(blocks(outlier=outlier), width=width)
        marks = {m["id"]: m for m in scene.marks}
        knob = marks["pull-outlier"]["y"]
        stem = marks["one-stem21"]["p"]
        across = max(stem[::2]) - min(stem[::2])
        assert knob == stem[-1] and stem[-1] == min(stem[1::2])
        assert (across > 0) == (outlier > TOP), "only a stem that leaves the others' scale is torn"
        assert not covered(scene)
        tops.append(knob)
    assert tops == sorted(set(tops), reverse=True)


@pytest.mark.parametrize("width", [WIDE, NARROW])
@pytest.mark.parametrize("preset", SCALES.presets)
def test_a_bar_is_as_high_as_what_is_kept_and_a_lost_weight_is_a_red_one_at_zero(preset, width):
    r = SCALES.run(**SCALES.inputs(SCALES.presets[preset]))
    marks = {m["id"]: m for m in SCALES.scenes(r, width=width)[0].marks}
    for id, kept in (("one", r.one), ("blocks", r.blocks)):
        unit = {i: marks[f"{id}-stem{i}"]["h"] / abs(v) for i, v in enumerate(r.values) if i != r.at}
        scale = max(unit.values())
        for i, stays in enumerate(kept.values):
            if i == r.at:
                continue
            bar = marks[f"{id}-kept{i}"]
            assert bar["role"] == ("primary" if stays else "hot")
            if stays and abs(stays) < TOP * r.size:
                assert bar["h"] == pytest.approx(abs(stays) * scale, abs=0.5)


@given(st.sampled_from(list(cost.BLOCK_FORMATS)), st.sampled_from([4, 8, 16, 32, 64]))
def test_every_format_follows_the_block_and_the_knob_stands_at_its_end(name, group):
    r = blocks(format_name=name, group=group)
    assert r.blocks.group == group
    marks = {m["id"]: m for m in SCALES.scene(r).marks}
    edges = [m["x"] for id, m in marks.items() if id.startswith("blocks-edge")]
    assert len(edges) == COUNT // group - 1
    assert not edges or marks["pull-group"]["x"] == pytest.approx(min(edges), abs=0.02)
    own = cost.BLOCK_FORMATS[name].fixed_group
    assert ("’s numbers" in marks["blocks-title"]["s"]) == (own not in (None, group))


def test_it_opens_on_trained_weights_with_one_pulled_up():
    r = SCALES.run(**SCALES.inputs())
    others = [v for i, v in enumerate(r.values) if i != r.at]
    assert others == [v for i, v in enumerate(trained_units()[0]) if i != r.at]
    assert (r.one.zeros, r.blocks.zeros) == (54, 20) and "As trained" not in SCALES.scene(r).takeaway
    assert "As trained" in SCALES.scene(SCALES.run(**SCALES.inputs({"outlier": 5}))).takeaway
    four = SCALES.run(**SCALES.inputs({"group": 4}))
    start = r.at // 4 * 4
    assert [four.blocks.values[i] for i in range(start, start + 4) if i != r.at] == [0, 0, 0], (
        "as the lesson says"
    )


def test_four_times_the_outlier_is_four_times_as_far_beyond_the_panel_as_its_marks_say():
    """The broken stem has a scale of its own, with three marks: its end lies where they say."""
    ends = {}
    for outlier in (5, 10, 20, 30):
        marks = {
            mark["id"]: mark for mark in SCALES.scene(SCALES.run(**SCALES.inputs({"outlier": outlier}))).marks
        }
        ends[outlier] = marks["pull-outlier"]["y"]
        for times in (10, 20, 30):
            assert marks[f"one-times{times}"]["s"] == f"{times}×"
            if times == outlier:
                assert marks[f"one-mark{times}"]["y"] == pytest.approx(ends[outlier], abs=0.5)
    assert (ends[10] - ends[20]) == pytest.approx(ends[20] - ends[30], abs=0.5)
    assert (ends[5] - ends[10]) == pytest.approx((ends[10] - ends[20]) / 2, abs=1)


def test_an_error_below_a_percent_is_not_said_to_be_none():
    marks = SCALES.scene(SCALES.run(**SCALES.inputs({"format_name": "int8"}))).marks
    said = [mark["s"] for mark in marks if "-error" in mark["id"]]
    assert said and not any(words.endswith("error 0%") for words in said)
