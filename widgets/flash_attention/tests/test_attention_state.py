"""Bytes against arrays that are really laid out, and how they grow."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernels.machines import machine
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


def test_the_curve_goes_through_the_point():
    r = run(length=4096)
    (scene,) = STATE.scenes(r)
    marks = {m["id"]: m for m in scene.marks}
    for s, name in enumerate(("naive-now", "tiled-now")):
        points = marks[f"curve-{s}"]["p"]
        assert (marks[name]["x"], marks[name]["y"]) in list(zip(points[::2], points[1::2], strict=True))


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
    assert marks["matrix-name"]["s"].endswith("of scores")


@pytest.mark.parametrize("width", [WIDE, NARROW])
def test_no_curve_runs_through_the_ratio(width):
    for length in (256, 512, 4096, 65536, 131072):
        for heads in (1, 64):
            marks = {m["id"]: m for m in STATE.scene(run(length=length, heads=heads), width=width).marks}
            left, top, right, low = extent(marks["ratio"])
            for curve in ("curve-0", "curve-1"):
                p = marks[curve]["p"]
                ends = list(zip(p[::2], p[1::2], strict=True))
                for (x1, y1), (x2, y2) in zip(ends, ends[1:], strict=False):
                    for share in (0, 0.25, 0.5, 0.75, 1):
                        x, y = x1 + share * (x2 - x1), y1 + share * (y2 - y1)
                        assert not (left < x < right and top < y < low), (length, heads, curve)
