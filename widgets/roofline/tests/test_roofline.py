"""The explorer against counted bytes, and on both sides of the ridge."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernels.machines import MACHINES
from widgets.registry import find
from widgets.roofline.roofline import BYTES, KINDS
from widgets.scene import NARROW, WIDE
from widgets.tests.rules import extent

ROOF = find("roofline")


def at(**inputs):
    return ROOF.run(**ROOF.inputs(inputs))


@given(
    st.sampled_from(list(KINDS)),
    st.sampled_from([1, 16, 256, 4096]),
    st.sampled_from(["A100", "H100", "B200"]),
)
def test_time_is_the_slower_of_the_two(operation, batch, machine_name):
    r = at(operation=operation, batch=batch, machine_name=machine_name)
    m = MACHINES[machine_name]
    assert r.memory_s == pytest.approx(r.bytes_moved / m.bandwidth)
    assert r.compute_s == pytest.approx(r.flops / m.rate("fp16"))
    assert r.time_s == max(r.memory_s, r.compute_s) == pytest.approx(m.time(r.flops, r.bytes_moved))
    assert r.attainable_flop_s == pytest.approx(r.flops / r.time_s)
    assert (r.bound == "memory") == (r.flop_per_byte < r.ridge_flop_per_byte)
    assert 0 < r.peak_share <= 1


def test_bytes_of_a_gemm_and_of_gelu_are_those_of_its_arrays():
    a, b = (np.zeros((512, 512), np.float16) for _ in range(2))
    assert at(operation="gemm", batch=512).bytes_moved == a.nbytes + b.nbytes + (a @ b).nbytes
    x = np.zeros((64, 4096), np.float16)
    r = at(operation="gelu", batch=64)
    assert (r.bytes_moved, r.flops) == (2 * x.nbytes, 5 * x.size)


@given(st.sampled_from(["decode_70b", "decode_layer", "prefill", "gemm"]))
def test_the_knob_climbs_towards_the_ridge(operation):
    climb = [place.flop_per_byte for place in at(operation=operation).trail]
    assert climb == sorted(climb) and len(set(climb)) == len(climb)


def test_the_knob_leaves_element_wise_work_where_it_is():
    assert len({round(place.flop_per_byte, 9) for place in at(operation="gelu").trail}) == 1


def test_splitting_a_model_shares_the_time_and_not_the_intensity():
    one, eight = at(devices=1), at(devices=8)
    assert one.time_s == pytest.approx(8 * eight.time_s)
    assert one.flop_per_byte == pytest.approx(eight.flop_per_byte, rel=1e-6)


def test_a_machine_without_fp8_says_so():
    with pytest.raises(ValueError, match="dtype must be one of .* on A100, got 'fp8'; "):
        at(machine_name="A100", dtype="fp8")


@pytest.mark.parametrize("width", [NARROW, WIDE])
@pytest.mark.parametrize(
    "machine_name, dtype", [(n, d) for n, m in MACHINES.items() for d in BYTES if d in m.flops]
)
def test_every_name_stands_on_its_dots_side_of_the_ridge(machine_name, dtype, width):
    marks = {
        m["id"]: m for m in ROOF.scenes(at(machine_name=machine_name, dtype=dtype), width=width)[0].marks
    }
    ridge = marks["ridge"]["x"]
    for i in range(7):
        dot, name = marks[f"usual{i}"], marks[f"usual{i}-name"]
        start, _, end, _ = extent(name)
        assert (end < ridge) if dot["x"] < ridge else (start > ridge), name["s"]
        assert dot["y"] + 5 <= marks["ridge-below"]["y2"]


@pytest.mark.parametrize("width", [WIDE, NARROW])
@pytest.mark.parametrize("operation, batch", [("decode_70b", 1), ("decode_70b", 256), ("prefill", 1024), ("prefill", 4096),
                                              ("gemm", 4096), ("gemm", 1024), ("gelu", 4096)])  # fmt: skip
def test_the_points_name_stands_free_of_roofs_dots_and_ridge(operation, batch, width):
    marks = ROOF.scene(at(operation=operation, batch=batch), width=width).marks
    name = next(mark for mark in marks if mark["id"] == "here-name")
    left, top, right, low = extent(name)
    ridge = next(mark for mark in marks if mark["id"] == "ridge")
    assert not left < ridge["x"] < right
    for mark in marks:
        if mark["t"] == "circle" and mark["id"].startswith("trail"):
            assert not (left < mark["x"] < right and top < mark["y"] < low), mark["id"]
        if mark["id"] == "roof":
            (x1, y1), (x2, y2) = zip(mark["p"][:4:2], mark["p"][1:4:2], strict=True)
            for x in (max(left, x1), min(right, x2)):
                height = y1 + (y2 - y1) * (x - x1) / (x2 - x1)
                assert x > x2 or height < top, mark["id"]


def test_the_usual_operations_move_with_the_numbers_format():
    wide, narrow = at(), at(dtype="fp8")
    for two_bytes, one_byte in zip(wide.usual, narrow.usual, strict=True):
        assert one_byte.flop_per_byte == pytest.approx(2 * two_bytes.flop_per_byte)
    decode = next(p for p in narrow.usual if p.name == "decode, batch 1")
    assert decode.flop_per_byte == pytest.approx(narrow.flop_per_byte, rel=0.01), "as the point above it"


@pytest.mark.parametrize("operation", ["gelu", "layernorm"])
def test_an_operation_that_its_knob_cannot_move_says_so(operation):
    for batch in (1, 64, 4096):
        scene = ROOF.scene(at(operation=operation, batch=batch))
        name = next(m for m in scene.marks if m["id"] == "here-name")
        assert name["s"].startswith("any number of") and "can't move this point" in scene.takeaway
    assert "any" not in next(m["s"] for m in ROOF.scene(at()).marks if m["id"] == "here-name")


def test_a_part_of_a_model_is_called_a_part():
    for devices in (2, 8, 16):
        scene = ROOF.scene(at(devices=devices))
        assert f"one of {devices} GPUs" in scene.summary
        assert any(f"1/{devices} of the model" in one.label for one in scene.figures)
    whole = ROOF.scene(at(devices=1))
    assert "on one GPU" in whole.summary and not any("of the model" in one.label for one in whole.figures)
    assert "part of" not in ROOF.scene(at(operation="gemm")).summary


@pytest.mark.parametrize("width", [WIDE, NARROW])
@pytest.mark.parametrize("inputs", ROOF.presets.values(), ids=ROOF.presets)
def test_the_limit_is_the_first_figure_the_tinted_half_and_the_longer_bar(inputs, width):
    r = at(**inputs)
    scene = ROOF.scene(r, width=width)
    marks = {m["id"]: m for m in scene.marks}
    assert scene.figures[0].text == ("bytes" if r.memory_s > r.compute_s else "arithmetic")
    assert scene.takeaway.lower().startswith(scene.figures[0].text)
    bars = [marks[f"time-{bound}"]["w"] for bound in ("memory", "compute")]
    longest = max(r.memory_s, r.compute_s)
    assert (bars[0] > bars[1]) == (r.memory_s > r.compute_s)
    for long, s in zip(bars, (r.memory_s, r.compute_s), strict=True):
        assert long == pytest.approx(max(2, max(bars) * s / longest), abs=0.02)
    xs, ridge = marks["tint"]["p"][::2], marks["ridge"]["x"]
    assert min(xs) <= marks["here"]["x"] <= max(xs) and (max(xs) == ridge) == (r.bound == "memory")


def test_a_click_on_a_usual_operation_shows_it_where_its_dot_is():
    marks = {m["id"]: m for m in ROOF.scene(at()).marks}
    for i, usual in enumerate(sorted(at().usual, key=lambda p: p.flop_per_byte)):
        shown = at(**marks[f"usual{i}"]["set"])
        assert (
            shown.flop_per_byte == pytest.approx(usual.flop_per_byte, rel=0.01) and shown.bound == usual.bound
        )
