"""The dispatch explorer against the measured tables it reads."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernels.quantization_layouts import cost
from kernels.quantization_layouts.cost import kbit_tables as tables
from widgets.registry import find
from widgets.scene import NARROW, WIDE, extent

KBIT = find("kbit_dispatch")


def dispatch(**inputs):
    return KBIT.run(**KBIT.inputs(inputs))


@given(st.integers(2, 5), st.sampled_from([1, 4]))
def test_a_block_is_its_dense_layers_and_its_experts(k, m):
    r = dispatch(k=k, m=m)
    rows = tables.BEST_US[m]
    assert r.chosen.dense_us == pytest.approx(sum(rows[name][k] for name in tables.DENSE))
    assert r.chosen.moe_us == pytest.approx(sum(rows[name][k] for name in tables.MOE))
    assert r.chosen.total_us == pytest.approx(r.chosen.dense_us + r.chosen.moe_us)
    assert r.fp16.speedup == 1


@given(st.integers(1, 64))
def test_users_between_two_reported_rows_lie_between_them(users):
    known = sorted(tables.USERS)
    low = max(u for u in known if u <= users)
    high = min(u for u in known if u >= users)
    assert tables.USERS[low][0] <= dispatch(users=users).time_ratio <= tables.USERS[high][0]


def test_the_win_ends_with_a_warning_and_the_memory_stays():
    for users in (1, 8, 15, 16, 64):
        scene = KBIT.scene(dispatch(users=users))
        assert bool(scene.warning) == (users >= 16)
    assert "memory is still saved" in scene.warning


def test_a_session_sees_two_sizes_of_m():
    r = dispatch(users=8, chunk=256)
    assert (r.decode_m, r.prefill_m) == (8, 264)
    assert (r.decode_family, r.prefill_family) == ("MMA", "dequant + library")


def test_cards_that_hold_the_weights():
    """The source's one card for 35 GB does not add up: 24 GB each."""
    r = dispatch(k=4)
    assert (r.cards, r.fp16_cards) == (2, 6)
    assert dispatch(k=2, parameters_b=7).cards == 1


def test_every_measured_shape_stands_in_the_table():
    rows = KBIT.scene(dispatch()).table.rows
    assert len([row for row in rows if row[1] >= 64]) == len(tables.LARGE_M_US)
    assert {row[0] for row in rows if row[1] == 1} == {*tables.SHAPES, "the block"}


@given(st.integers(1, 64))
def test_both_pictures_say_times_as_fast(users):
    r = dispatch(users=users)
    assert r.session_speedup * r.time_ratio == pytest.approx(1)
    assert KBIT.scene(r).figures[0].value == r.session_speedup


@given(st.integers(1, 64))
def test_the_curve_follows_k_and_is_the_reported_one_at_four(users):
    """Fewer bits are never slower, and for a crowd they hardly matter: its time is in unpacked weights."""
    speeds = [dispatch(k=k, users=users).session_speedup for k in (2, 3, 4, 5)]
    assert speeds == sorted(speeds, reverse=True)
    assert dispatch(users=users).time_ratio == pytest.approx(cost.user_ratio(users))
    assert dispatch(k=2, users=64).session_speedup < 1.01 * dispatch(k=4, users=64).session_speedup


def test_two_bits_redraw_the_curve():
    def curve(k):
        return next(m for m in KBIT.scene(dispatch(k=k)).marks if m["id"] == "curve")["p"]

    assert curve(2) != curve(4)
    assert dispatch(k=2).break_even_users >= dispatch(k=4).break_even_users == 16


@given(st.integers(2, 5), st.sampled_from([1, 4]), st.sampled_from([NARROW, WIDE]))
def test_k_is_pulled_at_its_bars_end_and_the_parts_have_a_key(k, m, width):
    marks = {mark["id"]: mark for mark in KBIT.scene(dispatch(k=k, m=m), width=width).marks}
    row = k - 2
    bar = marks[f"bar{row}-MoE"]
    assert marks["pull-k"]["x"] == pytest.approx(bar["x"] + bar["w"], abs=0.1)
    assert marks[f"bar{row}-us"]["x"] > marks["pull-k"]["x"] + 16, "the knob covers no number"
    for role, name in (("primary", "dense"), ("secondary", "MoE")):
        assert {marks[f"bar{i}-{name}"]["role"] for i in range(5)} == {marks[f"key-{role}"]["role"]} == {role}


def test_the_words_follow_k_and_the_panel_says_its_own_m():
    assert "Fewer bits widen" in KBIT.scene(dispatch(k=2)).takeaway
    assert "narrows" in KBIT.scene(dispatch(k=5)).takeaway
    assert dispatch(k=5).session_speedup < dispatch(k=4).session_speedup < dispatch(k=2).session_speedup
    said = {mark["id"]: mark.get("s") for mark in KBIT.scene(dispatch(users=64)).marks}["bars-m"]
    assert said == "measured at M = 1; the session decodes at 64"


@pytest.mark.parametrize("width", [WIDE, NARROW])
@pytest.mark.parametrize("users", [1, 2, 4, 8, 16, 32, 64])
def test_no_line_strikes_a_name_out_and_no_knob_hides_a_tick(users, width):
    """A line that stands where a name does lies under the bar that carries the name."""
    for k, chunk in ((2, 64), (4, 512), (5, 1024)):
        marks = KBIT.scene(dispatch(users=users, k=k, chunk=chunk), width=width).marks
        order = {mark["id"]: i for i, mark in enumerate(marks)}
        words = [(mark["id"], extent(mark)) for mark in marks if mark["t"] == "text"]
        for mark in marks:
            if mark["id"] in ("decode-at", "prefill-at", "at"):
                top, low = sorted((mark["y"], mark["y2"]))
                struck = {id for id, (left, high, right, bottom) in words
                          if left < mark["x"] < right and high < low and top < bottom}  # fmt: skip
                covered = {"lane0-name", "lane1-name", "lane2-name"} if mark["id"] != "at" else {"won-name"}
                assert struck <= covered and all(order[id] > order[mark["id"]] for id in struck)
        knob = next(mark for mark in marks if mark["id"] == "pull-users")
        hidden = [id for id, (left, high, right, bottom) in words
                  if left < knob["x"] + 9 and knob["x"] - 9 < right and high < knob["y"] + 9 and knob["y"] - 9 < bottom]  # fmt: skip
        assert not hidden, (k, hidden)


def test_the_first_number_is_the_session_s_which_is_what_is_asked():
    r = dispatch()
    first, second = KBIT.scene(r).figures[:2]
    assert first.value == r.session_speedup == pytest.approx(1.75, abs=0.01) and "session" in first.label
    assert second.label == "users break even"


def test_the_prefill_s_slider_says_that_it_moves_no_time():
    chunk = next(one for one in KBIT.controls if one.name == "chunk")
    assert {dispatch(chunk=n).session_speedup for n in chunk.stops} == {dispatch().session_speedup}
    assert "no measured time" in chunk.help
