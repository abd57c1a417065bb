"""Cures in turn: what they leave, in which order, and never more than the ceiling allows."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernels.next_bottleneck import cost
from widgets import units
from widgets.next_bottleneck.decode_chain import CURES, LARGEST, ROLES, SHORT
from widgets.registry import find
from widgets.scene import NARROW, WIDE, extent

CHAIN = find("decode_chain")
POWERS = st.sampled_from([1, 2, 8, 32, 128])


def chain(**inputs):
    return CHAIN.run(**CHAIN.inputs(inputs))


@given(POWERS, st.sampled_from([256, 1024, 4096]), st.sampled_from([2, 4, 8]), st.sampled_from([4, 8]))
def test_each_cure_takes_the_largest_part_and_never_beats_its_ceiling(batch, context, weight_bits, kv_bits):
    r = chain(batch=batch, context=context, weight_bits=weight_bits, kv_bits=kv_bits)
    for before, after in zip(r.steps, r.steps[1:], strict=False):
        uncured = {s.cured for s in r.steps[r.steps.index(after) :]}
        assert after.cured == max(uncured, key=before.parts_s.__getitem__)
        assert 1 < before.step_s / after.step_s
        assert {n: t for n, t in after.parts_s.items() if n != after.cured} == {
            n: t for n, t in before.parts_s.items() if n != after.cured
        }
        if after.cured == before.limit:
            assert before.step_s / after.step_s < before.limit_ceiling
    assert r.speedup == pytest.approx(r.steps[0].step_s / r.steps[-1].step_s)
    assert sum(r.steps[-1].parts_s.values()) == pytest.approx(r.steps[-1].step_s)


def test_all_cures_together_are_more_than_the_product_of_each_alone():
    r = chain()
    product = 1.0
    for part, cured_s in r.cured_s.items():
        product *= r.steps[0].step_s / (r.steps[0].step_s - r.steps[0].parts_s[part] + cured_s)
    assert r.speedup > product
    in_turn = 1.0
    for step in r.steps:
        in_turn *= step.gain
    assert r.speedup == pytest.approx(in_turn), "the gains of the picture multiply to the whole"


def test_a_quarter_of_the_weight_bytes_is_far_from_four_times_faster():
    """12 of 20 ms are launches: weights of 4 bits bring 1.24x now, and 1.9x once a graph has taken the gaps."""
    r = chain()
    assert r.steps[0].limit == "launch gaps" and r.steps[1].limit == "linear weights"
    assert r.weights_alone_speedup == pytest.approx(1.24, abs=0.005)
    assert r.steps[1].step_s / r.steps[2].step_s == pytest.approx(1.9, abs=0.01)
    assert r.steps[2].parts_s["linear weights"] == pytest.approx(r.steps[0].parts_s["linear weights"] / 4)


def test_long_contexts_make_attention_the_limit_and_one_gpu_has_nothing_to_reduce():
    assert chain(context=32768).steps[0].limit == "attention"
    alone = chain(model="Llama-3-8B", devices=1)
    assert "all-reduce" not in {s.cured for s in alone.steps} and len(alone.steps) == 6


def test_the_source_s_weights_are_those_of_four_gpus():
    """ "~34 GB a pass" is a quarter of the model in 16 bits: 10.4 ms at 3.35 TB/s, half of it at half the bits."""
    r = chain(devices=4, weight_bits=8)
    read_s = r.steps[0].parts_s["linear weights"]
    assert read_s * 3.35e12 == pytest.approx(cost.REPORTED_WEIGHT_READ_BYTES, rel=0.03)
    assert r.steps[-1].parts_s["linear weights"] == pytest.approx(read_s / 2)


def test_what_does_not_fit_is_a_sentence():
    with pytest.raises(ValueError, match="Memory of a GPU must be at least 184.*got 80.*; take more GPUs"):
        chain(devices=1)


def _bars(scene, id):
    return [m for m in scene.marks if re.fullmatch(rf"{id}-\d", m["id"])]


@pytest.mark.parametrize("width", [WIDE, NARROW])
@pytest.mark.parametrize("preset", CHAIN.presets)
def test_a_unit_is_as_many_ms_in_every_bar_and_at_every_step(preset, width):
    r = chain(**CHAIN.presets[preset])
    per_s = None
    for i, scene in enumerate(CHAIN.scenes(r, width=width)):
        for id, step in [("alone", r.weights_alone), *((f"step{k}", r.steps[k]) for k in range(i + 1))]:
            row = _bars(scene, id)
            long = row[-1]["x"] + row[-1]["w"] - row[0]["x"]
            per_s = per_s or long / step.step_s
            assert long == pytest.approx(step.step_s * per_s, abs=2)


@pytest.mark.parametrize("width", [WIDE, NARROW])
@pytest.mark.parametrize("preset", CHAIN.presets)
def test_the_next_bar_slides_down_from_this_one_and_later_ones_are_not_drawn(preset, width):
    r = chain(**CHAIN.presets[preset])
    scenes = CHAIN.scenes(r, width=width)
    for i, scene in enumerate(scenes[:-1]):
        here, next_ = _bars(scene, f"step{i}"), _bars(scene, f"step{i + 1}")
        assert [(m["x"], m["y"], m["w"]) for m in here] == [(m["x"], m["y"], m["w"]) for m in next_]
        assert _bars(scenes[i + 1], f"step{i + 1}")[0]["y"] > here[0]["y"]
        assert not [m for m in scene.marks if m["id"].startswith(f"step{i + 2}-")]


@pytest.mark.parametrize("width", [WIDE, NARROW])
@pytest.mark.parametrize("preset", CHAIN.presets)
def test_a_red_frame_and_a_line_follow_the_largest_part_and_the_takeaway_lists_them(preset, width):
    r = chain(**CHAIN.presets[preset])
    scene = CHAIN.scenes(r, width=width)[-1]
    marks, named, middles = {m["id"]: m for m in scene.marks}, [], []
    for k, step in enumerate(r.steps):
        largest = list(step.parts_s).index(max(step.parts_s, key=step.parts_s.get))
        share, frame = marks[f"step{k}-{largest}"], marks[f"step{k}-frame"]
        assert frame["role"] == "hot" and not frame.get("closed")
        xs, ys = frame["p"][::2], frame["p"][1::2]
        assert (min(xs), max(xs)) == pytest.approx((share["x"], share["x"] + share["w"]), abs=2.1)
        assert (min(ys), max(ys)) == pytest.approx((share["y"], share["y"] + share["h"]), abs=2.1)
        if label := marks.get(f"step{k}-limit"):
            assert (label["role"], label["size"]) == ("hot", "big")
            assert label["s"].rsplit(" ", 1)[0] in (step.limit, SHORT.get(step.limit))
        else:  # a slim row
            assert step.gain < 1.055 and step.limit == r.steps[k - 1].limit and share["h"] < 12
            assert k < len(r.steps) - 1, "the last limit is always named"
        middles.append((min(xs) + max(xs)) / 2)
        if k:
            way = marks[f"step{k}-way"]["p"]
            assert (way[0], way[6]) == pytest.approx((middles[k - 1], middles[k]), abs=2)
        named += [step.limit] if named[-1:] != [step.limit] else []
    if len(named) > 4:
        named = [SHORT.get(one, one) for one in named]
    said = scene.takeaway
    if r.picked:
        assert said.startswith(f"In any order the cures end at {units.seconds(r.steps[-1].step_s)}.")
        return
    assert said.endswith(f": {', '.join(named)}.") if len(named) > 1 else f"it is {named[0]}." in said
    often = {2: "once", 3: "twice"}.get(len(named), f"{len(named) - 1} times")
    assert len(named) < 2 or f"moved {often}" in said


@pytest.mark.parametrize("width", [WIDE, NARROW])
def test_a_bar_says_its_time_and_the_figures_what_all_cures_bring(width):
    r = chain()
    scene = CHAIN.scenes(r, width=width)[-1]
    marks = {m["id"]: m.get("s") for m in scene.marks}
    for k, step in enumerate(r.steps):
        assert marks[f"step{k}-time"] == units.seconds(step.step_s)
    assert marks["alone-time"] == units.seconds(r.weights_alone.step_s)
    assert scene.figures[0].text == marks[f"step{len(r.steps) - 1}-time"]
    assert [one.text for one in scene.figures[1:]] == ["7.43×", "47.6%", "1.24× as fast"]


def test_a_knob_hangs_at_the_end_of_the_bar_it_shortens():
    for bits in (2, 4, 8):
        marks = {m["id"]: m for m in CHAIN.scenes(chain(weight_bits=bits, kv_bits=4))[-1].marks}
        alone, cached = marks["alone-5"], marks["step3-5"]
        assert marks["pull-weight_bits"]["x"] == pytest.approx(alone["x"] + alone["w"], abs=2)
        assert marks["pull-kv_bits"]["x"] == pytest.approx(cached["x"] + cached["w"], abs=2)


@pytest.mark.parametrize("width", [WIDE, NARROW])
@pytest.mark.parametrize("preset", CHAIN.presets)
def test_each_part_keeps_its_colour_and_says_its_share(preset, width):
    r = chain(**CHAIN.presets[preset])
    scenes = CHAIN.scenes(r, width=width)
    marks = {m["id"]: m for m in scenes[-1].marks}
    said = 0
    for id, step in [("alone", r.weights_alone), *((f"step{k}", one) for k, one in enumerate(r.steps))]:
        assert [m["role"] for m in _bars(scenes[-1], id)] == [ROLES[part] for part in step.parts_s]
        for p, time_s in enumerate(step.parts_s.values()):
            if words := marks.get(f"{id}-part{p}", {}).get("s"):
                assert words.split()[-1] == f"{time_s / step.step_s:.0%}"
                said += 1
    assert said > 3
    for k, step in enumerate(r.steps):
        cured = {one.cured for one in r.steps[: k + 1]}
        assert scenes[k].caption.endswith("cured already.") == (step.limit in cured)


def test_a_knob_is_drawn_last_and_no_words_lie_where_a_hand_may_pull_it():
    for preset in CHAIN.presets.values():
        marks = CHAIN.scenes(chain(**preset))[-1].marks
        kinds = [m["t"] for m in marks]
        assert set(kinds[kinds.index("handle") :]) == {"handle"}
        for knob in (m for m in marks if m["t"] == "handle"):
            for words in (m for m in marks if m["t"] == "text"):
                left, top, right, low = extent(words)
                if top < knob["y"] < low:
                    reached = knob["drag"][0]["at"]
                    assert right < min(reached) - 9 or left > max(reached) + 9, words["id"]


def test_a_cure_that_no_pull_would_show_has_no_knob():
    marks = {m["id"] for m in CHAIN.scenes(chain(batch=1))[-1].marks}
    assert "pull-weight_bits" in marks and "pull-kv_bits" not in marks


PICKED = st.lists(st.sampled_from([LARGEST, *CURES]), min_size=6, max_size=6)


@given(PICKED)
def test_a_picked_part_is_cured_in_its_turn_and_every_order_ends_alike(picks):
    r, plain = chain(**{f"cure{i + 1}": one for i, one in enumerate(picks)}), chain()
    assert sorted(s.cured for s in r.steps) == sorted(s.cured for s in plain.steps)
    assert r.steps[-1].step_s == pytest.approx(plain.steps[-1].step_s)
    done = set()
    for pick, before, after in zip(picks, r.steps, r.steps[1:], strict=False):
        waiting = set(CURES) - done
        largest = max(waiting, key=before.parts_s.__getitem__)
        assert after.cured == (pick if pick in waiting else largest)
        done.add(after.cured)
    order = [s.cured for s in r.steps]
    assert r.picked == (order != [s.cured for s in plain.steps])


@pytest.mark.parametrize("preset", CHAIN.presets)
def test_a_click_on_a_part_cures_it_next_and_a_cured_part_has_no_click(preset):
    inputs = CHAIN.presets[preset]
    r = chain(**inputs)
    marks = {m["id"]: m for m in CHAIN.scenes(r)[-1].marks}
    for row, step in enumerate(r.steps):
        done = {one.cured for one in r.steps[: row + 1]}
        for p, part in enumerate(step.parts_s):
            set_ = marks[f"step{row}-{p}"].get("set")
            if part in done or row == len(r.steps) - 1 or not step.parts_s[part]:
                assert set_ is None
            else:
                assert set_ == {f"cure{row + 1}": part}
                assert chain(**{**inputs, **set_}).steps[row + 1].cured == part
