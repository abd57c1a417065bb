"""The dispatch explorer against the measured tables it reads."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernels.quantization_layouts import cost
from kernels.quantization_layouts.cost import kbit_tables as tables
from widgets.answer import plain_result
from widgets.controls import InputError
from widgets.quantization_layouts import kbit_model
from widgets.registry import find
from widgets.scene import NARROW, WIDE
from widgets.tests import rules

KBIT = find("kbit_dispatch")
H200 = cost.measured("H200")
of_h200 = st.sampled_from(sorted(H200))


def dispatch(**inputs):
    return KBIT.run(**KBIT.inputs(inputs))


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
    r = dispatch(users=8)
    assert (r.decode_m, r.prefill_m) == (8, 520)
    assert (r.decode_family, r.prefill_family) == ("MMA", "dequant + library")


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


@given(st.sampled_from(["RTX 4090", "H200"]), st.integers(1, 64))
def test_the_zones_are_the_kernels_that_decoding_takes(card, users):
    r = dispatch(card=card, users=users)
    (zone,) = [one for one in r.zones if one.first <= users <= one.last]
    assert zone.family == r.decode_family
    assert [one.first for one in r.zones] == [1, *(one.last + 1 for one in r.zones[:-1])] and r.zones[
        -1
    ].last == 64
    marks = {mark["id"]: mark for mark in KBIT.scene(r).marks}
    lit = [i for i in range(len(r.zones)) if marks[f"zone{i}"]["role"] == "primary"]
    assert [r.zones[i] for i in lit] == [zone]
    band = marks[f"zone{lit[0]}"]
    assert band["x"] - 2 <= marks["pull-users"]["x"] <= band["x"] + band["w"] + 2


def test_the_source_s_zones_are_its_rule():
    assert [(one.family, one.first, one.last) for one in dispatch().zones] == [
        ("scalar GEMV", 1, 4), ("MMA", 5, 16), ("dequant + library", 17, 64)
    ]  # fmt: skip


def test_the_words_follow_k():
    assert "Fewer bits widen" in KBIT.scene(dispatch(k=2)).takeaway
    assert "narrows" in KBIT.scene(dispatch(k=5)).takeaway
    assert dispatch(k=5).session_speedup < dispatch(k=4).session_speedup < dispatch(k=2).session_speedup


@pytest.mark.parametrize("users", [1, 2, 4, 8, 15, 17, 32, 64])
@pytest.mark.parametrize("card", ["RTX 4090", "H200"])
def test_what_is_won_is_green_and_what_is_lost_red(card, users):
    marks = {mark["id"]: mark for mark in KBIT.scene(dispatch(card=card, users=users)).marks}
    level = marks["fp16-line"]["y"]
    assert (
        max(marks["area-useful"]["p"][1::2]) <= level + 0.01
        and min(marks["area-hot"]["p"][1::2]) >= level - 0.01
    )
    won = dispatch(card=card, users=users).session_speedup > 1
    assert marks["at-name"]["role"] == ("useful" if won else "hot")
    assert (marks["pull-users"]["y"] < level) == won


def test_the_first_number_is_the_session_s_which_is_what_is_asked():
    r = dispatch()
    first, second = KBIT.scene(r).figures[:2]
    assert first.value == r.session_speedup == pytest.approx(1.75, abs=0.01) and "1 user" in first.label
    assert second.label == "users at most, and still a win" and second.value == 15
    assert dispatch(users=15).session_speedup > 1 == dispatch(users=16).session_speedup
    assert KBIT.scene(dispatch(users=16)).figures[0].role == "ink", "a draw is neither won nor lost"


# Which numbers an H200 gave is the table's affair, and another calibration changes them: what is asked here holds for any.


@given(st.integers(2, 5), st.integers(1, 64), st.sampled_from(range(0, 55, 5)))
def test_the_h200_s_sessions_are_computed_from_its_table(k, users, prompts):
    r = dispatch(card="H200", k=k, users=users, prompts=prompts)
    most, share = max(H200), prompts / 100
    blocks = {bits: (1 - share) * cost.block_us(bits, r.counted_m, H200) + share * cost.block_us(bits, most, H200)
              for bits in (k, 16)}  # fmt: skip
    assert r.time_ratio == pytest.approx(blocks[k] / blocks[16])
    assert r.counted_m == cost.measured_m(users, H200)
    assert r.session_speedup in [s.speedup for s in r.curve if s.users == users]
    lost = [s.users for s in r.curve if s.ratio >= 1]
    assert r.break_even_users == (min(lost) if lost else None)
    assert r.last_win_users == (min(lost) - 1 if lost else r.most_users)
    if not prompts:
        assert {s.users: s.ratio for s in r.curve} == cost.concurrency_ratios(k, range(1, 65), 512, 0.0, H200)


def test_a_measured_number_of_users_is_a_dot_on_the_stairs():
    r = dispatch(card="H200")
    assert [s.users for s in r.known] == [m for m in H200 if m <= 64]
    marks = {mark["id"]: mark for mark in KBIT.scene(r).marks}
    points = marks["curve"]["p"]
    corners = list(zip(points[::2], points[1::2], strict=True))
    treads = [(a, b) for a, b in zip(corners, corners[1:], strict=False) if a[1] == b[1]]

    def on_the_stairs(mark: dict) -> bool:
        return any(a[1] == mark["y"] and a[0] <= mark["x"] <= b[0] for a, b in treads)

    assert all(on_the_stairs(marks[f"u{s.users}"]) for s in r.known)
    knobs = (KBIT.scene(dispatch(card="H200", users=users)).marks for users in (1, 2, 4, 5, 8, 16, 17, 64))
    assert all(on_the_stairs(mark) for one in knobs for mark in one if mark["id"] == "pull-users")
    assert all(a[0] == b[0] or a[1] == b[1] for a, b in zip(corners, corners[1:], strict=False)), (
        "steps, no slopes"
    )


@given(st.integers(2, 5))
def test_the_lane_names_what_calibration_found_fastest_at_most_shapes(k):
    found = cost.fastest_families(cost.calibration("H200"), k)
    cells = dispatch(card="H200", k=k).cells
    assert [cell.m for cell in cells] == list(H200)
    for cell in cells:
        families = list(found[cell.m].values())
        assert cell.shapes == families.count(cell.family) == max(map(families.count, families))


def test_the_words_say_what_is_computed_and_what_was_reported():
    def said(**inputs):
        return " ".join(mark.get("s", "") for mark in KBIT.scene(dispatch(**inputs)).marks)

    assert "as reported" in said() and "estimated" in said(k=2) and "computed" not in said()
    ours = said(card="H200")
    assert (
        "computed from kernels measured on H200" in ours
        and "reads no prompt" in ours
        and "reported" not in ours
    )
    assert "A prompt fills 20% of the steps" in said(card="H200", prompts=20)


def test_prompts_leave_reported_sessions_as_they_were():
    assert dispatch(users=8, prompts=50) == dispatch(users=8)


def test_more_users_than_rows_measured_are_refused(monkeypatch):
    few = {m: H200[m] for m in sorted(H200)[:2]}
    monkeypatch.setitem(kbit_model.TABLES, "H200", few)
    kbit_model._filled.cache_clear()
    try:
        with pytest.raises(InputError, match=f"must be at most {max(few)} on H200, got 64; ") as refused:
            dispatch(card="H200", users=64)
        assert refused.value.control == "users"
    finally:
        kbit_model._filled.cache_clear()


def test_a_card_that_was_never_measured_is_not_offered(monkeypatch):
    def missing(card=tables.MACHINE):
        if card != tables.MACHINE:
            raise ValueError("no table of this card")
        return tables.BEST_US

    monkeypatch.setattr(cost, "measured", missing)
    assert list(kbit_model._tables()) == [tables.MACHINE]
    monkeypatch.setattr(
        cost, "measured", lambda card=tables.MACHINE: {} if card == "H200" else tables.BEST_US
    )
    assert list(kbit_model._tables()) == [tables.MACHINE], "a calibration cut short has no whole row"


@pytest.mark.parametrize("width", [WIDE, NARROW])
@pytest.mark.parametrize("prompts", [0, 20, 50])
@pytest.mark.parametrize("users", [1, 2, 3, 5, 16, 40, 64])
def test_the_h200_s_picture_keeps_the_rules(users, prompts, width):
    for k in (2, 4, 5):
        inputs = KBIT.inputs({"card": "H200", "users": users, "prompts": prompts, "k": k})
        r = KBIT.run(**inputs)
        scene = KBIT.scene(r, width=width)
        known = set(rules.numbers(plain_result(r)))
        assert not rules.problems(scene, known) + rules.ungripped(scene, inputs)
        assert bool(scene.warning) == (r.time_ratio >= 1)


@pytest.mark.parametrize("us", [0.25, 0.4, 0.7, 0.99, 1.3, 3.0])
@pytest.mark.parametrize("width", [WIDE, NARROW])
def test_the_picture_holds_whatever_a_calibration_gives(monkeypatch, us, width):
    """Kernels that always win, by little or by far, and that lose at once; the source's picture doesn't notice."""
    before = KBIT.scene(dispatch(), width=width)
    flat = {
        m: {name: {b: 8.0 if b == 16 else 8.0 * us for b in row} for name, row in H200[m].items()}
        for m in H200
    }
    monkeypatch.setitem(kbit_model.TABLES, "H200", flat)
    assert KBIT.scene(dispatch(), width=width) == before
    kbit_model._filled.cache_clear()
    try:
        for users in (1, 3, 16, 64):
            r = dispatch(card="H200", users=users)
            assert r.break_even_users == (1 if us >= 1 else None)
            scene = KBIT.scene(r, width=width)
            assert not rules.problems(scene, set(rules.numbers(plain_result(r))))
    finally:
        kbit_model._filled.cache_clear()


def test_two_bits_redraw_the_curve():
    def curve(k):
        return next(m for m in KBIT.scene(dispatch(k=k)).marks if m["id"] == "curve")["p"]

    assert curve(2) != curve(4)
    assert dispatch(k=2).break_even_users >= dispatch(k=4).break_even_users == 16


@given(st.integers(2, 5), st.sampled_from(["RTX 4090", "H200"]), st.integers(1, 64))
def test_the_table_is_the_curve_and_the_knob(k, card, users):
    r = dispatch(k=k, card=card, users=users)
    rows = KBIT.scene(r).table.rows
    assert [row[0] for row in rows] == sorted({users, *(s.users for s in r.known)})
    assert next(row for row in rows if row[0] == users)[1:] == (
        r.decode_family,
        r.session_speedup,
        r.time_ratio,
    )
    for at, family, speed, _ in rows:
        assert dispatch(k=k, card=card, users=at).decode_family == family
        assert dispatch(k=k, card=card, users=at).session_speedup == pytest.approx(speed)


@given(st.sampled_from(["RTX 4090", "H200"]), st.integers(1, 64), st.sampled_from([WIDE, NARROW]))
def test_no_plate_stands_on_the_curve(card, users, width):
    scene = KBIT.scene(dispatch(card=card, users=users), width=width)
    assert not [mark["id"] for mark in scene.marks if mark["id"].endswith("-plate")]


@given(st.integers(2, 5), st.integers(1, 64))
def test_the_share_that_unpacks_is_the_reported_one_at_four_bits(k, users):
    """Fewer bits shorten only the rest of the time, so the same unpacking is a larger share of it."""
    assert [dispatch(users=u).unpacking_share for u in tables.USERS] == pytest.approx(
        [0.13, 0.41, 0.55, 0.76, 0.93, 0.98]
    )
    four, here = dispatch(users=users), dispatch(users=users, k=k)
    assert here.unpacking_share * here.time_ratio == pytest.approx(four.unpacking_share * four.time_ratio)


def test_a_computed_session_says_which_rows_of_the_table_it_counts_as():
    marks = {mark["id"]: mark for mark in KBIT.scene(dispatch(card="H200", users=8)).marks}
    assert "8 users count as 16 rows, the next number that was measured." in marks["note0"]["s"]
    assert "at most of the seven shapes" in marks["zone0"]["tip"]


@pytest.mark.parametrize("users", [1, 4, 16, 64])
@pytest.mark.parametrize("width", [WIDE, NARROW])
def test_the_bars_of_time_show_why_the_win_fades(users, width):
    """Beside fp16's bar: all of the time at 4 bits, and of it the steps that unpack all weights."""
    r = KBIT.run(**KBIT.inputs({"users": users}))
    marks = {m["id"]: m for m in KBIT.scene(r, width=width).marks}
    whole = marks["time-fp16"]["w"]
    unpacks, works = marks["time-unpacks"]["w"], marks["time-works"]["w"]
    assert (unpacks + works) / whole == pytest.approx(r.time_ratio, rel=0.01)
    assert unpacks / (unpacks + works) == pytest.approx(r.unpacking_share, rel=0.01)
