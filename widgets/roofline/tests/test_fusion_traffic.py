"""The chain's traffic against arrays that are really passed along."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernels.machines import MACHINES
from kernels.roofline import cost
from widgets import units
from widgets.registry import find
from widgets.scene import NARROW, WIDE, extent

FUSION = find("fusion_traffic")


def fusion(**inputs):
    return FUSION.run(**FUSION.inputs(inputs))


@given(
    st.integers(1, 6),
    st.sampled_from([1, 64, 2048]),
    st.sampled_from([256, 4096]),
    st.sampled_from([1, 2, 4]),
)
def test_every_operation_reads_one_array_and_writes_one(operations, rows, width, element_bytes):
    r = fusion(operations=operations, rows=rows, width=width, element_bytes=element_bytes)
    x = np.empty((rows, width), {1: np.int8, 2: np.float16, 4: np.float32}[element_bytes])
    moved = sum(x.nbytes + np.empty_like(x).nbytes for _ in range(operations))
    assert r.unfused_bytes == moved and r.fused_bytes == 2 * x.nbytes
    assert r.unfused_bytes - r.fused_bytes == r.intermediate_traffic_bytes
    assert r.ratio == pytest.approx(operations)
    assert r.unfused_passes == 2 * operations and r.fused_passes == 2


@given(st.integers(1, 128))
def test_layers_multiply_traffic_and_not_what_is_alive(layers):
    one, many = fusion(), fusion(layers=layers)
    assert many.intermediate_traffic_bytes == layers * one.intermediate_traffic_bytes
    assert many.materialised_bytes == one.materialised_bytes


def test_time_is_bytes_over_bandwidth():
    r = fusion(machine_name="B200")
    assert r.saved_s == pytest.approx(r.intermediate_traffic_bytes / MACHINES["B200"].bandwidth)
    assert r.unfused_s - r.fused_s == pytest.approx(r.saved_s)


def test_the_gemms_arithmetic_is_said_and_takes_longer_than_the_one_kernels_bytes():
    r = fusion()
    assert (
        r.arithmetic_s == pytest.approx(2 * 2048 * 4096 * 4096 / 989e12, rel=1e-3)
        and r.arithmetic_s > r.fused_s
    )
    assert fusion(layers=80).arithmetic_s == pytest.approx(80 * r.arithmetic_s)
    last = FUSION.scenes(r)[-1]
    assert units.seconds(r.arithmetic_s) in last.caption and "needed" not in last.caption


def test_one_operation_has_nothing_to_fuse():
    r = fusion(operations=1)
    assert r.ratio == 1 and r.intermediate_traffic_bytes == 0
    assert not any("waste" in mark["id"] for mark in FUSION.scenes(r)[-1].marks)


def test_a_measured_kernel_stands_beside_the_fused_bytes():
    r = fusion()
    scene = FUSION.scenes(r, {"bytes_moved": 1.5 * r.fused_bytes})[-1]
    assert "1.5× the model" in scene.beside[0]


@given(st.integers(1, 6), st.sampled_from([1, 2048]), st.integers(1, 128))
def test_weights_are_counted_either_way(operations, rows, layers):
    r = fusion(operations=operations, rows=rows, layers=layers)
    assert r.weights_bytes == cost.gemm_weights_bytes(4096, layers=layers) == 4096 * 4096 * 2 * layers
    assert r.ratio_with_weights == pytest.approx(r.unfused_s / r.fused_s)


@pytest.mark.parametrize("width", [720, 340])
@pytest.mark.parametrize("operations", range(1, 7))
def test_each_pass_is_an_arrow_and_the_titles_count_them(operations, width):
    r = fusion(operations=operations)
    marks = {mark["id"]: mark for mark in FUSION.scenes(r, width=width)[-1].marks}
    fused = [id for id in marks if id.startswith("fused-") and id.endswith(("-read", "-write"))]
    one_each = [id for id in marks if id.startswith("chain-") and id.endswith(("-read", "-write"))]
    between = [id for id, m in marks.items() if m["t"] == "line" and id.startswith(("read", "write"))]
    assert (
        len(one_each + between) == r.unfused_passes + 1
        and f" {r.unfused_passes} pass" in marks["chain-title"]["s"]
    )
    assert len(fused) == r.fused_passes + 1 and f" {r.fused_passes} pass" in marks["fused-title"]["s"]
    assert all("1 for W" in marks[f"{way}-title"]["s"] for way in ("chain", "fused"))
    places = [marks[id]["x"] for id in one_each + between]
    assert len(set(places)) == len(places), "no arrow stands on another"


@pytest.mark.parametrize("width", [720, 340])
@pytest.mark.parametrize("operations", range(1, 7))
def test_boxes_in_memory_are_as_wide_as_their_bytes_and_none_lies_on_another(operations, width):
    marks = FUSION.scenes(fusion(operations=operations), width=width)[-1].marks
    ids = {"chain-x", "chain-w", "chain-y", *(f"z{i}" for i in range(1, operations))}
    boxes = sorted((m for m in marks if m["id"] in ids), key=lambda m: m["x"])
    assert len(boxes) == operations + 2 and len({m["h"] for m in boxes}) == 1
    weights = next(m["w"] for m in boxes if m["id"] == "chain-w")
    assert all(m["w"] == pytest.approx(weights / 2) for m in boxes if m["id"] != "chain-w")
    assert all(a["x"] + a["w"] < b["x"] for a, b in zip(boxes, boxes[1:], strict=False))


def test_the_answer_is_measured_off_beside_the_shorter_bar():
    r = fusion(operations=6)
    marks = {mark["id"]: mark for mark in FUSION.scenes(r)[-1].marks}
    hatched, more = marks["unfused-waste"], marks["more"]
    assert (more["x"], more["x2"]) == (hatched["x"], pytest.approx(hatched["x"] + hatched["w"], abs=0.02))
    assert marks["more-name"]["s"].startswith("168")
    labels = {one.label: one.text for one in FUSION.scenes(r)[-1].figures}
    assert labels["fewer bytes if fused"] == "3.5×" and "3.5×" in FUSION.scenes(r)[-1].takeaway
    assert FUSION.scenes(r)[-1].formula[-1][1].endswith("{fewer:3.5×}")


@pytest.mark.parametrize("width", [720, 340])
@pytest.mark.parametrize("operations", range(2, 7))
def test_an_intermediate_s_box_is_seen_whole_and_named_beside_it(operations, width):
    marks = FUSION.scenes(fusion(operations=operations), width=width)[-1].marks
    words = [m for m in marks if m["t"] == "text"] + [m for m in marks if m["role"] == "ground"]
    for i in range(1, operations):
        box = next(m for m in marks if m["id"] == f"z{i}")
        over = [m["id"] for m in words if apart(extent(m), extent(box)) < 0]
        assert not over, "its hatching is what it says"
        name = next(m for m in words if m.get("s", "").startswith(f"Z{i}"))
        assert abs(name["x"] - box["x"] - box["w"] / 2) < 1


def apart(a, b):
    """How far two boxes stand from one another; below 0 where they overlap."""
    return max(a[0] - b[2], b[0] - a[2], a[1] - b[3], b[1] - a[3])


def test_prediction_figure_and_takeaway_are_one_ratio_that_counts_the_weights():
    for rows in (1, 2048):
        figures = FUSION.scenes(fusion(rows=rows))[-1].figures
        assert figures[0].value == fusion(rows=rows).ratio_with_weights
        assert [one.role == "useful" for one in figures] == [rows > 1, False, False, False]
    scene = FUSION.scenes(fusion())[-1]
    assert FUSION.prediction.answer == "ratio_with_weights" and scene.figures[0].text == "2×"
    assert "With W counted" in scene.takeaway and "2× fewer" in scene.takeaway
    tensor, weights = (units.si_bytes(n) for n in (fusion().tensor_bytes, fusion().weights_bytes))
    assert tensor.replace(units.GAP, " ") in FUSION.prediction.question
    assert weights.replace(units.GAP, " ") in FUSION.prediction.question


@pytest.mark.parametrize("width", [NARROW, WIDE])
@pytest.mark.parametrize("preset", FUSION.presets)
def test_both_ways_run_at_one_rate_and_the_bars_are_what_has_moved(preset, width):
    """At each step both bars are as long as the bytes of that time, and the dots are on the arrows they belong to."""
    r = fusion(**FUSION.presets[preset])
    scenes = [{m["id"]: m for m in s.marks} for s in FUSION.scenes(r, width=width)]
    last = scenes[-1]
    whole = r.unfused_bytes + r.weights_bytes

    def length(marks, id):
        return sum(
            marks[f"{id}-{part}"]["w"] for part in ("weights", "must", "waste") if f"{id}-{part}" in marks
        )

    for step, marks in enumerate(scenes, start=1):
        full = last["unfused-whole"]["w"]
        assert length(marks, "unfused") == pytest.approx(full * step / len(scenes), abs=0.1)
        ours = min(1.0, whole * step / len(scenes) / (r.fused_bytes + r.weights_bytes))
        assert length(marks, "fused") == pytest.approx(last["fused-whole"]["w"] * ours, abs=0.1)
        for dot in (m for id, m in marks.items() if id.endswith("-dot")):
            arrows = [m for m in marks.values() if m["t"] == "line" and m["x"] == dot["x"]]
            assert any(min(m["y"], m["y2"]) - 0.1 <= dot["y"] <= max(m["y"], m["y2"]) + 0.1 for m in arrows)
    assert not [id for id in last if id.endswith("-dot")], "at the end nothing is on its way"
