"""Launches, graphs and compiling: the parts of a pass, added up."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from widgets.registry import find

LAUNCH = find("launch_overhead")


def launches(**inputs):
    return LAUNCH.run(**LAUNCH.inputs(inputs))


STATES = st.fixed_dictionaries(
    {
        "kernels": st.integers(1, 200),
        "launch_us": st.sampled_from([1.0, 7.5, 20.0]),
        "work_ms": st.sampled_from([0.05, 2.0, 20.0]),
        "layers": st.sampled_from([1, 70, 128]),
        "elementwise_percent": st.sampled_from([0, 40, 100]),
    }
)


@given(STATES)
def test_a_pass_is_its_parts(inputs):
    r = launches(**inputs)
    for p in (r.eager, r.graph, r.compiled, r.both):
        assert p.total_s == pytest.approx(p.gemm_s + p.elementwise_s + p.launches_s)
        assert p.speedup == pytest.approx(r.eager.total_s / p.total_s)
        assert p.gemm_s == pytest.approx(r.eager.gemm_s)
    assert r.eager.launches_s == pytest.approx(
        inputs["kernels"] * inputs["launch_us"] * 1e-6 * inputs["layers"]
    )
    assert r.eager.total_s - r.eager.launches_s == pytest.approx(inputs["work_ms"] * 1e-3 * inputs["layers"])
    assert r.graph.launches_s == r.both.launches_s == r.graph_s == pytest.approx(10e-6)


@given(STATES)
def test_the_rule_of_ten_percent_is_what_it_warns_by(inputs):
    r = launches(**inputs)
    assert bool(LAUNCH.scenes(r)[-1].warning) == r.try_graphs_first == (r.overhead_share > 0.10)


def test_a_faster_gpu_makes_the_share_larger_and_the_launches_no_shorter():
    slow, fast = launches(work_ms=2.0), launches(work_ms=1.0)
    assert fast.overhead_s == slow.overhead_s
    assert fast.overhead_share > slow.overhead_share
    assert slow.eager.total_s / fast.eager.total_s < 2


def test_a_graph_of_one_kernel_gains_nothing():
    assert launches(kernels=1).graph.speedup == pytest.approx(1)


def test_no_launch_stands_in_the_timeline_longer_than_it_is():
    r = launches()
    marks = {mark["id"]: mark for mark in LAUNCH.scenes(r)[-1].marks}
    assert marks["gap0"]["w"] / marks["work0"]["w"] == pytest.approx(10 / 40, rel=0.05)
