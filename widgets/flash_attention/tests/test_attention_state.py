"""Bytes against arrays that are really laid out, and how they grow."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernels.machines import machine
from widgets import units
from widgets.charts import holding
from widgets.registry import find
from widgets.scene import NARROW, WIDE, extent

STATE = find("attention_state")
POWER = st.integers(0, 6).map(lambda k: 2**k)


def run(**inputs):
    return STATE.run(**STATE.inputs(inputs))


@pytest.mark.parametrize("heads, group", [(4, 1), (8, 4), (1, 1)])
def test_bytes_of_the_arrays_themselves(heads, group):
    length, d = 256, 64
    r = run(length=length, heads=heads, head_dim=d, group=group)
    q, k = np.zeros((heads, length, d), np.float16), np.zeros((heads // group, length, d), np.float16)
    scores = np.zeros((heads, length, length), np.float16)
    assert r.tiled_bytes == 2 * q.nbytes + 2 * k.nbytes
    assert r.naive_bytes == r.tiled_bytes + 4 * scores.nbytes
    assert (r.q_bytes, r.kv_bytes) == (q.nbytes, k.nbytes)
    assert r.scores_layer_bytes == scores.nbytes == heads * r.score_matrix_bytes


@given(POWER, POWER, st.integers(8, 16).map(lambda k: 2**k))
def test_twice_the_length_doubles_the_strips_and_quadruples_the_scores(heads, group, length):
    group = min(group, heads)
    once = run(heads=heads, group=group, length=length)
    twice = run(heads=heads, group=group, length=2 * length)
    assert twice.tiled_bytes == 2 * once.tiled_bytes
    assert twice.score_matrix_bytes == 4 * once.score_matrix_bytes
    assert twice.state_ratio > once.state_ratio > 1


@given(st.sampled_from([32, 64, 128, 256]), st.sampled_from([256, 1024, 8192]))
def test_without_sharing_the_ratio_is_one_plus_length_over_dim(head_dim, length):
    assert run(head_dim=head_dim, length=length).state_ratio == pytest.approx(1 + length / head_dim)


def test_no_time_beats_the_roof():
    r, h200 = run(), machine("H200")
    assert r.tiled_s >= max(r.tiled_bytes / h200.bandwidth, 4 * 8192**2 * 128 * 64 / h200.rate("fp16"))
    assert r.naive_s == pytest.approx(r.naive_bytes / h200.bandwidth)


@pytest.mark.parametrize("width", [WIDE, NARROW])
@given(POWER, st.integers(8, 17).map(lambda k: 2**k))
def test_bars_are_as_long_as_bytes(width, heads, length):
    """Scores stored are the strips and what tiles spare; a bar is at least a unit long."""
    r = run(length=length, heads=heads)
    marks = {m["id"]: m for m in STATE.scene(r, width=width).marks}
    whole = marks["bytes-0-0"]["w"] + marks["bytes-0-1"]["w"]
    assert (
        marks["bytes-0-0"]["w"]
        == marks["bytes-1-0"]["w"]
        == pytest.approx(max(1, whole / r.state_ratio), abs=0.1)
    )
    assert r.spared_bytes == r.naive_bytes - r.tiled_bytes
    ratio = f"{r.state_ratio:.2f}×" if r.state_ratio < 10 else units.times(r.state_ratio)
    assert marks["bytes-end"]["s"].startswith(f"{ratio} ")


def test_squares_and_strips_are_to_scale():
    r = run(length=2048)
    marks = {m["id"]: m for m in STATE.scenes(r)[0].marks}
    assert marks["matrix"]["w"] / marks["q"]["w"] == pytest.approx(2048 / 128, rel=0.01)
    assert marks["matrix"]["w"] == pytest.approx(marks["matrix"]["h"], abs=0.01)


def test_it_says_what_cannot_be():
    with pytest.raises(ValueError, match="group must be at most the 2 query heads, got 8; "):
        run(heads=2, group=8)
    with pytest.raises(ValueError, match="dtype must be one of .* on A100, got 'fp8'"):
        run(dtype="fp8", machine_name="A100")


def test_scores_beyond_the_memory_are_a_warning():
    assert "do not fit" in STATE.scenes(run(length=131072))[0].warning
    assert not STATE.scenes(run())[0].warning


def test_measured_bytes_stand_beside_the_tiled_ones():
    (scene,) = STATE.scenes(run(), {"bytes_moved": 2 * run().tiled_bytes})
    assert "2× the model" in scene.beside[0]


@pytest.mark.parametrize("length, small", [(256, True), (512, True), (1024, False)])
def test_a_small_square_is_not_called_cheap(length, small):
    r = run(length=length)
    words = STATE.scenes(r)[0].takeaway
    assert ("no larger than its four strips" in words) == small
    assert not small or f"{r.state_ratio:g}× the bytes" in words
    assert r.state_ratio >= 2 and r.speedup > 1


@pytest.mark.parametrize("width", [WIDE, NARROW])
@pytest.mark.parametrize("length", [256, 512, 1024, 8192, 131072])
def test_the_tile_covers_no_word_of_the_square(length, width):
    marks = {m["id"]: m for m in STATE.scene(run(length=length), width=width).marks}
    tile = extent(marks["tile"])
    for id in (one for one in marks if one.startswith("matrix-") and marks[one]["t"] == "text"):
        left, top, right, low = extent(marks[id])
        assert top >= tile[3] or left >= tile[2], id
    assert "matrix-name" not in marks or marks["matrix-name"]["s"].endswith("of scores")
    assert length < 8192 or "matrix-name" in marks


@pytest.mark.parametrize("width", [WIDE, NARROW])
@given(st.integers(8, 17).map(lambda k: 2**k), st.integers(8, 17).map(lambda k: 2**k))
def test_the_scale_holds_while_the_corner_is_pulled(width, held, pulled):
    """A hand that closed at one length sees the other to the same scale, or is told that it does not fit."""
    ends = {}
    with holding(ends):
        before = {m["id"]: m for m in STATE.scene(run(length=held), width=width).marks}
        after = {m["id"]: m for m in STATE.scene(run(length=pulled), width=width).marks}
    if pulled <= 2 * held:
        assert after["matrix"]["w"] / before["matrix"]["w"] == pytest.approx(pulled / held, abs=0.03)
        assert after["q"]["w"] == before["q"]["w"]
    assert after["scale-title"]["s"].startswith("Let go" if pulled > 2 * held else "One head")
    if pulled == 2 * held:
        corner = before["twice"]["p"][4], before["twice"]["p"][5]
        assert corner == (before["twice"]["p"][2], before["twice"]["p"][5])
        assert after["pull-length"]["x"] == pytest.approx(corner[0], abs=0.1)
        assert after["pull-length"]["y"] == pytest.approx(corner[1], abs=0.1)


@pytest.mark.parametrize("width", [WIDE, NARROW])
@given(st.sampled_from([32, 64, 128, 256]), st.sampled_from([256, 8192, 131072]))
def test_what_is_on_chip_is_the_same_at_any_length(width, head_dim, length):
    marks = {m["id"]: m for m in STATE.scene(run(length=length, head_dim=head_dim), width=width).marks}
    assert marks["chip-k"]["h"] / marks["chip-tile"]["h"] == pytest.approx(head_dim / 128, rel=0.01)
    assert marks["chip-size"]["s"] == units.si_bytes(3 * 128 * head_dim * 2)
