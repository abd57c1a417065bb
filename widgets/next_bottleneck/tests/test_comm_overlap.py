"""What shows of the gradients' journey, against the same queue played out by hand, and its limits."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from widgets import units
from widgets.registry import find
from widgets.scene import NARROW, WIDE, extent

OVERLAP = find("comm_overlap")
BUCKETS = st.sampled_from([5, 25, 100, 400, 1600, 6400, 25600])
LINKS = st.sampled_from([25, 50, 64, 150, 300, 450, 900])
RINGS = st.sampled_from([2, 8, 64, 1024])


def overlap(**inputs):
    return OVERLAP.run(**OVERLAP.inputs(inputs))


@given(BUCKETS, LINKS, RINGS)
def test_the_link_sends_bucket_after_bucket_as_they_fill(bucket_mb, link, gpus):
    r = overlap(bucket_mb=bucket_mb, link_gb_s=link, gpus=gpus)
    left, filled, free_s = r.gradient_bytes, 0.0, 0.0
    while left > 1e-3:
        size = min(left, bucket_mb * 1e6)
        left, filled = left - size, filled + size
        ready_s = r.backward_s * filled / r.gradient_bytes
        free_s = max(ready_s, free_s) + 5e-6 + r.ring_factor * size / r.link_byte_s
    assert r.exposed_s == pytest.approx(max(0, free_s - r.backward_s), rel=1e-6, abs=1e-9)
    assert sum(one.buckets for one in r.sent) == r.buckets
    assert sum(one.busy_s for one in r.sent) == pytest.approx(r.communication_s + r.buckets * 5e-6)
    assert all(a.end_s <= b.start_s + 1e-12 for a, b in zip(r.sent, r.sent[1:], strict=False))


@given(BUCKETS, LINKS, RINGS)
def test_no_bucket_size_hides_more_than_fits(bucket_mb, link, gpus):
    r = overlap(bucket_mb=bucket_mb, link_gb_s=link, gpus=gpus)
    assert r.hidden_step_s <= r.step_s <= r.serial_s + r.buckets * 5e-6 + 1e-12
    assert 0 < r.efficiency <= 1


def test_one_bucket_is_no_overlap():
    r = overlap(bucket_mb=25600)
    assert r.buckets == 1 and r.step_s == pytest.approx(r.serial_s, rel=1e-4)


def test_over_pcie_the_ring_outlasts_the_backward_pass():
    r = overlap(link_gb_s=64)
    assert r.communication_s == pytest.approx(439e-3, rel=0.01) and r.communication_s > r.backward_s
    assert r.exposed_s > r.communication_s - r.backward_s


def test_a_small_bucket_pays_its_launch_over_and_over():
    """25 MB cross in 97 us, twenty launches; 1 MB in 4 us, less than one."""
    usual, small = overlap(), overlap(bucket_mb=1)
    assert usual.bucket_transfer_s == pytest.approx(97e-6, rel=0.01)
    assert usual.bucket_launch_s == small.bucket_launch_s == 5e-6
    assert small.bucket_transfer_s < small.bucket_launch_s
    slow = {"link_gb_s": 64}  # the link is busy throughout, so no launch hides
    assert overlap(bucket_mb=1, **slow).step_s > overlap(**slow).step_s + 70e-3


def marks_of(width=WIDE, step=-1, **inputs) -> dict:
    return {mark["id"]: mark for mark in OVERLAP.scenes(overlap(**inputs), width=width)[step].marks}


@pytest.mark.parametrize("inputs", [{}, {"link_gb_s": 64}, {"gpus": 1024, "link_gb_s": 50}, {"sms": 8}])
@pytest.mark.parametrize("width", [WIDE, NARROW])
def test_a_bucket_leaves_the_pass_where_it_was_filled(inputs, width):
    """Over a slow link it then waits: its line leans, and never starts after the backward pass."""
    marks = marks_of(width, **inputs)
    passes = marks["over-b"]
    drops = [mark for id, mark in marks.items() if id.startswith("drop")]
    assert len(drops) >= 12
    assert all(passes["x"] <= d["x"] <= passes["x"] + passes["w"] + 2 for d in drops)
    assert all(d["x"] <= d["x2"] for d in drops)


@pytest.mark.parametrize("width", [WIDE, NARROW])
def test_a_wait_is_named_and_no_line_strikes_a_word_out(width):
    assert "waits" in marks_of(width, link_gb_s=64)["waits"]["s"]
    for name, inputs in OVERLAP.presets.items():
        for step in range(24):
            marks = marks_of(width, step, **inputs)
            words = [extent(mark) for mark in marks.values() if mark["t"] == "text"]
            now = marks["now"]
            above = [w for w in words if w[0] < now["x"] < w[2] and now["y"] < w[3] and w[1] < now["y2"]]
            assert not above, (name, step)
            top = extent(marks["bucket-name"])[1]
            assert top > marks["pull-bucket"]["y"] + 9, "the words stand below their knob"


def test_eight_sms_cost_less_than_overlap_hides():
    """8 of 132 SMs, 6%, for 62 ms: 4 ms longer, 59 ms hidden."""
    r, free = overlap(sms=8), overlap()
    assert r.interference_s == pytest.approx(62.5e-3 * 8 / 132, rel=0.005)
    assert free.step_s < r.step_s < r.serial_s - 50e-3


def test_the_reported_curve_falls_from_90_to_18_percent():
    r = overlap()
    shares = [one.efficiency for one in r.reported]
    assert [one.gpus for one in r.reported] == [8, 16, 32, 64, 128, 256, 512, 1024]
    assert shares[0] == pytest.approx(0.90) and shares[-1] == pytest.approx(0.18)
    assert shares == sorted(shares, reverse=True) and shares[0] / shares[-1] == pytest.approx(5)


@pytest.mark.parametrize("link", [64, 150, 450])
@pytest.mark.parametrize("bucket", [1600, 6400])
def test_what_is_said_of_small_buckets_is_so_on_this_link(link, bucket):
    r = overlap(link_gb_s=link, bucket_mb=bucket)
    smallest, middle = (overlap(link_gb_s=link, bucket_mb=one).exposed_s for one in (1, 25))
    said = OVERLAP.scenes(r)[-1].takeaway
    if "too small" in said:
        assert smallest > middle
    if "the smallest hide the most" in said:
        assert smallest < r.exposed_s and smallest <= 1.05 * middle


@pytest.mark.parametrize("width", [720, 340])
def test_what_lent_sms_lengthen_is_hatched_and_said(width):
    r = overlap(sms=8)
    marks = {m["id"]: m for m in OVERLAP.scenes(r, width=width)[-1].marks}
    unit = marks["over-f"]["w"] / r.forward_s
    assert marks["over-lent"]["role"] == "overhead", "not the colour of what shows"
    assert marks["over-lent"]["w"] == pytest.approx(max(2, r.interference_s * unit), rel=0.1)
    assert "lent" in marks["journey-title"]["s"]
    plain = {m["id"]: m for m in OVERLAP.scenes(overlap(), width=width)[-1].marks}
    assert "over-lent" not in plain and "lent" not in plain["journey-title"]["s"]


def test_buckets_drawn_as_one_are_counted_and_one_is_one():
    words = {m["id"]: m.get("s", "") for m in OVERLAP.scenes(overlap())[-1].marks}["bucket-name"]
    first = overlap().sent[0]
    assert words == f"a bucket is full after {units.seconds(first.full_s)}, each bar above is {first.buckets}"
    only = OVERLAP.scenes(overlap(bucket_mb=25600))
    assert all("1 buckets" not in s.summary + s.caption for s in only)


@pytest.mark.parametrize("width", [720, 340])
def test_every_part_of_the_pass_in_turn_is_named(width):
    ids = {m["id"] for m in OVERLAP.scenes(overlap(), width=width)[-1].marks}
    assert {"turn-f-name", "turn-b-name", "turn-c-name"} <= ids


@pytest.mark.parametrize("width", [720, 340])
@pytest.mark.parametrize("preset", OVERLAP.presets)
def test_no_bucket_is_drawn_before_it_is_sent(preset, width):
    r = OVERLAP.run(**OVERLAP.inputs(OVERLAP.presets[preset]))
    for scene in OVERLAP.scenes(r, width=width):
        marks = {m["id"]: m for m in scene.marks}
        hand = marks["now"]["x"]
        sent = [m for id, m in marks.items() if id.startswith("sent")]
        assert all(m["clock"] == "now" for m in sent), "between two steps the view waits for the hand"
        assert all(m["x"] + m["w"] <= hand + 0.7 for m in sent)
    assert len(sent) == len(r.sent), "at last all are there"


@pytest.mark.parametrize("width", [720, 340])
@pytest.mark.parametrize("preset", OVERLAP.presets)
def test_figures_and_the_bar_of_the_traffic_follow_the_clock(preset, width):
    r = OVERLAP.run(**OVERLAP.inputs(OVERLAP.presets[preset]))
    scenes = OVERLAP.scenes(r, width=width)
    for one, scene in zip(r.moments[:-1], scenes[:-1], strict=True):
        marks = {m["id"]: m for m in scene.marks}
        per_s = marks["unsent"]["w"] / r.communication_s
        assert [f.value for f in scene.figures[1:]] == [one.now_s, one.sent_share, one.waits_s]
        assert marks["hidden"]["w"] == pytest.approx(one.hidden_s * per_s, abs=0.02)
        assert marks["shown"]["w"] <= one.waits_s * per_s + 0.02 and "hidden-name" not in marks
    for now, then in zip(r.moments, r.moments[1:], strict=False):
        assert (
            now.sent_share <= then.sent_share
            and now.hidden_s <= then.hidden_s
            and now.waits_s <= then.waits_s
        )
    last = r.moments[-1]
    assert last.sent_share == pytest.approx(1) and last.waits_s == pytest.approx(r.exposed_s)
    assert last.hidden_s == pytest.approx(max(0, r.communication_s - r.exposed_s))
    assert [f.value for f in scenes[-1].figures] == [r.serial_s, r.step_s, r.speedup, r.exposed_s]
