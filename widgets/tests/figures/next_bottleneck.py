"""The figures of next_bottleneck, as its simulators give them."""

import pytest

from widgets.registry import find


def played(name, **inputs):
    simulator = find(name)
    return simulator.run(**simulator.inputs(inputs))


def speculative():
    """The source divides by 3.5 rounded, so its 10.3 ms are 10.2."""
    r = played("speculative_decoding", acceptance=0.78, drafts=5, draft_ms=0.8, step_ms=32)
    assert r.draft_s == pytest.approx(4e-3) and r.verify_s == 32e-3
    assert r.tokens == pytest.approx(3.5, rel=0.01)
    assert r.token_s == pytest.approx(10.3e-3, rel=0.01)
    assert r.speedup == pytest.approx(3.1, rel=0.01)


def playbook():
    """As reported; arithmetic contradicts round 1, and rounds 2 and 3 follow from the report before them."""
    start, precision, fusion, guessing = played("playbook_70b").rounds
    assert list(start.parts_s.values()) == pytest.approx(
        [share * 85e-3 for share in (0.38, 0.24, 0.14, 0.12, 0.12)]
    )
    assert [one.reported_s for one in (start, precision, fusion, guessing)] == [85e-3, 48e-3, 32e-3, 10.3e-3]
    assert [one.reported_tokens_s for one in (start, precision, fusion)] == [280, 720, 1050]
    assert precision.arithmetic_s == pytest.approx(70.5e-3, abs=0.05e-3)
    assert fusion.from_reported_s == pytest.approx(32e-3, rel=0.03)
    assert guessing.from_reported_s == pytest.approx(10.3e-3, rel=0.01)


def layernorm_roofline():
    r = played("profiler_detective", case="a LayerNorm").profile
    assert r.intensity == pytest.approx(5.4, rel=0.01)
    assert r.bound == r.bottleneck == "memory"
    assert r.roof_share == r.bandwidth_share == pytest.approx(0.84, rel=0.01)


def allreduce_b1():
    r = played("comm_overlap")
    assert r.message_bytes == pytest.approx(32.8e3, rel=0.01)
    assert r.message_transfer_s == pytest.approx(36.4e-9, rel=0.01)
    assert r.message_launch_s == 5e-6 and r.launch_over_transfer > 100


def overlap_7b():
    """The source hides all of it; by buckets of 25 MB the last one shows, 44 us."""
    r = played("comm_overlap")
    assert r.gradient_bytes == pytest.approx(16.1e9, rel=0.005)
    assert r.ring_factor == 1.75
    assert r.communication_s == pytest.approx(62.5e-3, rel=0.005)
    assert r.backward_s == pytest.approx(166.3e-3, rel=0.005)
    assert r.serial_s == pytest.approx(311.9e-3, rel=0.005)
    assert r.hidden_step_s == pytest.approx(249.4e-3, rel=0.005)
    assert r.step_s == pytest.approx(249.4e-3, rel=0.005)
    assert r.speedup == pytest.approx(1.25, rel=0.005)


FIGURES = {
    "speculative": speculative,
    "playbook": playbook,
    "layernorm_roofline": layernorm_roofline,
    "allreduce_b1": allreduce_b1,
    "overlap_7b": overlap_7b,
}
