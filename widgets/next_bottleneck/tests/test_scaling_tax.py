"""The fleet's books: every GPU paid for is counted once, and the source's tax and days come out."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from widgets.registry import find

FLEET = find("scaling_tax")
SIZES = st.sampled_from([8, 16, 128, 1024, 16384])


def fleet(**inputs):
    return FLEET.run(**FLEET.inputs(inputs))


@given(SIZES, st.integers(48, 75), st.integers(15, 48), st.integers(0, 50), st.integers(0, 30))
def test_every_gpu_is_counted_once_and_none_works_better_than_in_its_node(
    gpus, local, measured, slow, operating
):
    r = fleet(gpus=gpus, local_mfu=local, measured_mfu=measured, slow=slow, operating=operating)
    assert r.useful_gpus + r.tax_gpus + r.waiting_gpus + r.operating_gpus == pytest.approx(gpus)
    assert min(r.useful_gpus, r.tax_gpus + 1e-9, r.waiting_gpus + 1e-9, r.operating_gpus + 1e-9) >= 0
    assert r.mfu == pytest.approx(r.fleet_mfu * (1 - slow / 100) * (1 - operating / 100))
    assert r.mfu <= r.fleet_mfu <= r.local_mfu
    shares = [one.mfu for one in r.curve]
    assert shares == sorted(shares, reverse=True) and shares[0] == r.local_mfu
    assert next(one.mfu for one in r.curve if one.gpus == 128) == pytest.approx(measured / 100)


def test_the_tax_of_128_gpus():
    """65% falls to 48%: 26.2%; 245 ms a step are 181 in one node's pace."""
    r = fleet()
    assert r.tax == pytest.approx(0.262, abs=0.0006) and not r.regression
    assert r.node_step_s == pytest.approx(181e-3, rel=0.001) and r.step_s == pytest.approx(245e-3)
    assert r.lost_gpus == pytest.approx(33.5, abs=0.05)


def test_92_percent_busy_and_30_useful():
    assert fleet(measured_mfu=30).tax == pytest.approx(0.538, abs=0.001)


def test_one_node_at_nine_tenths_costs_all_a_tenth_and_shows_as_a_regression():
    slow, well = fleet(slow=10), fleet()
    assert slow.mfu == pytest.approx(0.9 * well.mfu) and slow.step_s == pytest.approx(well.step_s / 0.9)
    assert slow.regression and FLEET.scene(slow).warning and not FLEET.scene(well).warning
    assert not fleet(slow=3).regression  # within three points of the usual tax


def test_a_percent_of_ten_thousand_is_a_hundred():
    assert fleet(gpus=10000).one_percent_gpus == pytest.approx(100)


def test_thirty_days_of_a_benchmark_in_production():
    """10 to 20% make 33 to 37.5 days; the source's 35 to 40 take up to 25%."""
    days = [fleet(operating=share).production_days for share in (10, 20, 25)]
    assert days == pytest.approx([33.3, 37.5, 40], abs=0.05)


def test_traces_of_a_thousand_gpus_are_half_a_terabyte():
    assert next(one.trace_bytes for one in fleet().curve if one.gpus == 1024) == pytest.approx(512e9)


def test_a_fleet_that_beats_its_node_is_a_sentence():
    with pytest.raises(ValueError, match="must be at most one node's 40%, got 48%; a fleet does not beat"):
        fleet(local_mfu=40)
