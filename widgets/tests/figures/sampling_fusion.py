"""The figures of sampling_fusion, as its simulators give them."""

import pytest

from kernels.sampling_fusion import cost
from widgets.registry import find


def sampling_fleet():
    simulator = find("sampling_chain")
    r = simulator.run(**simulator.inputs({"tokens_s": 100, "replicas": 1000}))
    assert 200 * r.gpus_of_each_us == pytest.approx(20)  # the axis below the times
    assert r.naive.time_s == pytest.approx(200e-6, rel=0.02)  # the chain it opens with is such a chain
    assert r.naive.launches >= 12
    assert r.naive.gpus / r.replicas == pytest.approx(0.02, rel=0.02)
    fleet = cost.Fleet(200e-6, 100, 1000)
    assert (fleet.share, fleet.gpus) == (pytest.approx(0.02), pytest.approx(20))


FIGURES = {"sampling_fleet": sampling_fleet}
