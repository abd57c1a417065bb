"""Block scales as the explorer shows them, against quantizing each block on its own."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernels.quantization_layouts import cost
from widgets.quantization_layouts.block_scales import COUNT, OUTLIER_AT, TOP
from widgets.registry import find
from widgets.scene import NARROW, WIDE
from widgets.tests.rules import covered

SCALES = find("block_scales")
FREE = [name for name, form in cost.BLOCK_FORMATS.items() if form.fixed_group is None]


def blocks(**inputs):
    return SCALES.run(**SCALES.inputs(inputs))


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


def test_one_scale_for_all_is_the_same_as_a_block_of_64():
    r = blocks(group=64)
    assert r.blocks == r.one and r.gain == 1


@pytest.mark.parametrize("name", list(cost.BLOCK_FORMATS))
def test_both_panels_hold_the_same_elements_so_that_only_the_scale_differs(name):
    r = blocks(format_name=name, group=16)
    one, own = (cost.BLOCK_FORMATS[kept.format] for kept in (r.one, r.blocks))
    assert (one.levels, one.bits) == (own.levels, own.bits) and r.one.group == COUNT
    assert r.blocks.group == (own.fixed_group or 16)


@pytest.mark.parametrize("name", list(cost.BLOCK_FORMATS))
def test_what_is_counted_as_lost_is_not_none_where_the_error_is_as_large_as_the_numbers(name):
    r = blocks(format_name=name, outlier=20)
    marks = {m["id"]: m for m in SCALES.scene(r).marks}
    for id, kept in (("one", r.one), ("blocks", r.blocks)):
        words = marks[f"{id}-zeros"]["s"]
        assert kept.error_share < 0.7 or int(words.split()[0]) > 8, (id, words, kept.error_share)
    if name.startswith("codebook"):
        off = np.abs(np.array(r.values) - np.array(r.one.values))[np.arange(COUNT) != OUTLIER_AT]
        assert r.one.far == np.sum(off > r.size / 2)


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


@pytest.mark.parametrize("preset", SCALES.presets)
def test_a_phone_s_caption_stands_clear_of_the_next_heading(preset):
    (scene,) = SCALES.scenes(blocks(**SCALES.presets[preset]), width=NARROW)
    marks = {m["id"]: m for m in scene.marks}
    assert marks["blocks-title"]["y"] - marks["how"]["y"] >= 20
