"""The six steps against numpy, and the picture against the steps."""

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernels.moe_routing import cost
from widgets.registry import find
from widgets.scene import NARROW, WIDE
from widgets.tests.rules import covered

FORWARD = find("moe_forward")
STATES = st.fixed_dictionaries(
    {"tokens": st.integers(2, 6), "experts": st.integers(3, 4), "top_k": st.integers(1, 3)}
)


def run(**inputs):
    return FORWARD.run(**FORWARD.inputs({"follow": 0} | inputs))


@given(STATES)
def test_the_layer_is_numpys(inputs):
    r = run(**inputs)
    x, router, mlps = cost.example(inputs["tokens"], inputs["experts"])
    x, logits = np.array(x), np.array(x) @ np.array(router)
    out = np.zeros_like(x)
    for t, row in enumerate(x):
        best = np.argsort(-logits[t], kind="stable")[: inputs["top_k"]]
        weight = np.exp(logits[t, best]) / np.exp(logits[t, best]).sum()
        for w, e in zip(weight, best, strict=True):
            gate = row @ np.array(mlps[e].gate)
            out[t] += w * (
                (gate / (1 + np.exp(-gate)) * (row @ np.array(mlps[e].up))) @ np.array(mlps[e].down)
            )
    np.testing.assert_allclose(r.layer.combined, out, atol=1e-12)
    assert r.largest_difference < 1e-12
    assert r.rows == inputs["tokens"] * inputs["top_k"] == sum(r.layer.loads)


def test_launches_of_the_default_by_hand():
    r = run()
    assert (r.active_experts, r.separate_launches, r.fused_launches) == (4, 2 + 4 * 6 + 1, 5)


@pytest.mark.parametrize("width", [WIDE, NARROW])
@given(STATES)
def test_unbroken_lines_lead_to_the_block_back_to_the_token_and_into_the_sum(width, inputs):
    """In the last step, on a phone too, the whole way there and back is in view, and each line ends at its row."""
    r = run(**inputs)
    scenes = FORWARD.scenes(r, width=width)
    marks = {m["id"]: m for m in scenes[-1].marks}

    def leads(line: str, start: str, end: str) -> bool:
        way, a, b = marks[line], marks[start], marks[end]
        assert way["y"] == pytest.approx(a["y"] + a["h"] / 2, abs=0.02), line
        assert way["y2"] == pytest.approx(b["y"] + b["h"] / 2, abs=0.02), line
        return 0 < way["x"] - a["x"] - a["w"] < 5 and 0 < b["x"] - way["x2"] < 5

    for row, (token, slot) in enumerate(r.layer.order):
        assert leads(f"to-{row}", f"x-{token}", f"row-{row}")
        assert leads(f"from-{row}", f"row-{row}", f"slot-{token}-{slot}")
        assert leads(f"sum-{token}-{slot}", f"slot-{token}-{slot}", f"out-{token}")
        assert marks[f"row-{row}-of"]["s"].split()[0] == f"t{token}"
    ways = [
        sum(m["t"] == "line" and m["id"].startswith(("to-", "from-", "sum-")) for m in scene.marks)
        for scene in scenes
    ]
    assert ways == [0, 0, r.rows, r.rows, 2 * r.rows, 3 * r.rows]


@pytest.mark.parametrize("width", [WIDE, NARROW])
@given(STATES)
def test_each_expert_s_block_holds_its_rows_and_is_the_largest_thing(width, inputs):
    r = run(**inputs)
    marks = {m["id"]: m for m in FORWARD.scenes(r, width=width)[-1].marks}
    row = 0
    for e, load in enumerate(r.layer.loads):
        block = marks[f"block-{e}"]["p"]
        (left, right), (top, low) = ((min(p), max(p)) for p in (block[::2], block[1::2]))
        for _ in range(load):
            mine = marks[f"row-{row}"]
            assert left < mine["x"] and mine["x"] + mine["w"] < right
            assert top < mine["y"] and mine["y"] + mine["h"] < low
            row += 1
        assert marks[f"group-{e}"]["s"].startswith(f"E{e}: {load} row" if load else f"E{e}: no token")
        others = [m for id, m in marks.items() if id.startswith(("x-", "slot-", "out-")) and m["t"] == "rect"]
        assert all((right - left) * (low - top) > m["w"] * m["h"] for m in others)
    assert row == r.rows


@pytest.mark.parametrize("width", [WIDE, NARROW])
@given(STATES)
def test_every_launch_is_drawn_and_the_last_step_has_launched_them_all(width, inputs):
    r = run(**inputs)
    scenes = FORWARD.scenes(r, width=width)

    def squares(scene, prefix: str, role: str) -> int:
        return sum(m["t"] == "rect" and m["id"].startswith(prefix) and m["role"] == role for m in scene.marks)

    assert squares(scenes[-1], "launch-", "overhead") == r.separate_launches
    assert squares(scenes[-1], "fused-", "useful") == r.fused_launches
    drawn = squares(scenes[3], "fused-", "useful") - squares(scenes[2], "fused-", "useful")
    assert f"{drawn} launches run" in scenes[3].caption
    assert f"takes {r.step_launches[3]}." in scenes[3].caption
    so_far = [squares(scene, "launch-", "overhead") for scene in scenes]
    assert so_far == [sum(r.step_launches[: i + 1]) for i in range(len(scenes))]


@pytest.mark.parametrize("width", [WIDE, NARROW])
@pytest.mark.parametrize("follow", range(6))
def test_the_knob_stands_clear_of_the_tokens_names(width, follow):
    assert not [
        found for scene in FORWARD.scenes(run(follow=follow), width=width) for found in covered(scene)
    ]


@given(STATES)
def test_rows_of_one_expert_lie_side_by_side_and_never_on_another(inputs):
    r = run(**inputs)
    marks = [m for m in FORWARD.scenes(r)[2].marks if m["t"] == "rect" and m["id"].startswith("row-")]
    assert all(b["y"] - a["y"] - a["h"] >= 1.9 for a, b in zip(marks, marks[1:], strict=False))


def test_the_followed_token_is_the_one_that_stands_out():
    r = run(follow=3)
    rows = {f"row-{row}" for row, (token, _) in enumerate(r.layer.order) if token == 3}
    results = {"slot-3-0", "slot-3-1"}
    for scene, own in zip(
        FORWARD.scenes(r)[2:], (rows, rows, rows | results, results | {"out-3"}), strict=True
    ):
        solid = {m["id"] for m in scene.marks if m["t"] == "rect" and m["role"] == "now"}
        assert own | {"x-3"} <= solid and not {"x-1", "x-2"} & solid
        assert "t3" in scene.caption or "Grouped" in scene.caption


def test_a_token_that_is_not_there():
    with pytest.raises(ValueError, match="follow must be below 2, the number of tokens, got 5; pick another"):
        run(tokens=2, follow=5)


@given(STATES)
def test_the_first_steps_work_out_the_followed_tokens_choice(inputs):
    """On a desk: its numbers times the gate, each logit's bar as high as it is, what is kept solid with its weight."""
    r = run(**inputs)
    for step, scene in enumerate(FORWARD.scenes(r)[:2]):
        marks = {mark["id"]: mark for mark in scene.marks}
        zero = marks["gate-zero-line"]["y"]
        kept = dict(zip(r.layer.topk_ids[0], r.layer.topk_weights[0], strict=True))
        for e, logit in enumerate(r.layer.logits[0]):
            sum_ = sum(
                float(marks[f"gate-x{j}"]["s"]) * float(marks[f"gate-{j}-{e}"]["s"][2:]) for j in range(3)
            )
            assert sum_ == pytest.approx(logit)
            bar = marks[f"gate-bar{e}"]
            assert bar["y"] + bar["h"] == pytest.approx(zero) or logit < 0
            solid = not step or e in kept
            assert bar["role"] == ("now" if solid else "idle")
            assert (f"gate-weight{e}" in marks) == (step == 1 and e in kept)
        bars = [marks[f"gate-bar{e}"]["h"] for e in range(r.expert_count)]
        assert np.argmax(bars) == np.argmax(np.abs(r.layer.logits[0]))
    assert not any(mark["id"].startswith("gate-") for mark in FORWARD.scenes(r, width=NARROW)[0].marks)


@pytest.mark.parametrize("top_k", [1, 2, 3])
@pytest.mark.parametrize("follow", [0, 1, 5])
def test_rows_are_counted_from_the_top_as_one_sees_them(top_k, follow):
    r = run(top_k=top_k, follow=follow)
    scene = FORWARD.scenes(r)[2]
    bands = sorted(
        (m for m in scene.marks if m["id"].startswith("row-") and m["t"] == "rect"), key=lambda m: m["y"]
    )
    counted = [i for i, m in enumerate(bands, start=1) if m["role"] == "now"]
    said = re.findall(r"(\d+)(?:st|nd|rd|th)", scene.caption)
    assert list(map(int, said)) == counted and len(counted) == top_k


@pytest.mark.parametrize("width", [WIDE, NARROW])
@given(STATES)
def test_only_the_followed_token_has_numbers_from_the_blocks_on(width, inputs):
    for scene in FORWARD.scenes(run(**inputs), width=width)[2:]:
        words = {m["id"]: m for m in scene.marks if m["t"] == "text" and "." in m["s"]}
        assert all(m["role"] == "now" or m.get("on") == "now" for m in words.values()), words.keys()
        assert bool(words) == (width == WIDE)


@given(STATES)
def test_the_rest_of_the_sum_is_what_the_caption_says(inputs):
    r = run(**inputs)
    weights = [float(w) for w in re.findall(r"([\d.]+)·E", FORWARD.scenes(r)[-1].caption)]
    assert weights == [pytest.approx(w, abs=0.005) for w in r.layer.topk_weights[0]]


def test_one_decimal_says_an_input_whole():
    r = run()
    assert all(round(v, 1) == pytest.approx(v) for row in r.x for v in row)


@pytest.mark.parametrize("width", [WIDE, NARROW])
@given(STATES)
def test_a_row_and_its_numbers_travel_as_one(width, inputs):
    """Whatever moves from one step to the next takes its numbers along: in its box's place, or coming with it."""
    scenes = [{m["id"]: m for m in scene.marks} for scene in FORWARD.scenes(run(**inputs), width=width)]
    moved = 0
    for before, after in zip(scenes, scenes[1:], strict=False):
        for id in (
            id for id, m in after.items() if m["t"] == "rect" and re.match(r"(row|slot|out)-[\d-]+$", id)
        ):
            if id not in before or (before[id]["x"], before[id]["y"]) == (after[id]["x"], after[id]["y"]):
                continue
            moved += 1
            words = [after[f"{id}-of"]] if f"{id}-of" in after else []
            assert {one["by"] for one in words} <= {id}
            if f"{id}-of" in before and words:
                middle = [m[id]["y"] + m[id]["h"] / 2 - m[f"{id}-of"]["y"] for m in (before, after)]
                assert middle[0] == pytest.approx(middle[1], abs=0.05), id
    rows = inputs["tokens"] * inputs["top_k"]
    assert moved >= 2 * rows, "the rows to their experts, and the results back"
    shown = [m["s"] for m in scenes[2].values() if m["t"] == "text" and m["id"].startswith("slot-")]
    assert not shown, "a number that has not set out yet is not written twice"
