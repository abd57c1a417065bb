"""What shows of the gradients' journey, against the same queue played out by hand, and its limits."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from widgets.registry import find

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


def test_a_batch_of_64_turns_the_small_all_reduce_around():
    """2.1 MB in 2.3 us: 64 times the bytes, the same launch; about 20 us of compute are nine times that."""
    one, many = overlap(), overlap(batch=64)
    assert one.launch_over_transfer > 100 and many.launch_over_transfer < 3
    assert many.message_bytes == pytest.approx(2.1e6, rel=0.01)
    assert many.message_transfer_s == pytest.approx(2.3e-6, rel=0.02)
    assert 20e-6 / many.message_transfer_s == pytest.approx(9, abs=0.5)


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
