"""The frontier: configurations A and B of the source, and what holds for a third one."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from widgets.registry import find

FRONTIER = find("efficiency_frontier")


def serve(**inputs):
    return FRONTIER.run(**FRONTIER.inputs(inputs))


def test_configuration_a():
    """50 tokens/s, 20 ms, 8 GPUs, $0.12 for 1,000 tokens: $2.70 a GPU hour."""
    a = serve().a
    assert (a.tokens_s, a.gpus, a.users, a.between_tokens_s) == (pytest.approx(50), 8, 1, 0.020)
    assert a.usd_per_1k == pytest.approx(0.12)


def test_configuration_b_and_what_does_not_add_up():
    """60 times cheaper, 6 times later. Its 4,000 tokens/s a GPU are not 64 users at 120 ms, nor is its price."""
    r = serve()
    assert (r.b.gpus, r.b.users, r.b.between_tokens_s, r.b.bits) == (4, 64, 0.120, 4)
    assert r.reported_cost_ratio == pytest.approx(60) and r.latency_ratio == pytest.approx(6)
    assert r.reported_b_tokens_s == 16000 and r.b.tokens_s == pytest.approx(533, rel=0.001)
    assert r.cost_ratio == pytest.approx(21.3, rel=0.01)


def test_each_application_has_its_own_best():
    assert serve(application="chatbot").best == "yours"
    assert serve(application="batch").best == "B: throughput"
    assert serve(application="medical").best == "A: latency"


@given(st.integers(1, 256), st.sampled_from([2.0, 30.0, 500.0]), st.sampled_from([1, 4, 16]))
def test_cost_is_gpus_over_tokens(users, between_ms, gpus):
    r = serve(users=users, between_ms=between_ms, gpus=gpus)
    assert r.yours.tokens_s == pytest.approx(users / between_ms * 1000)
    assert r.yours.usd_per_1k == pytest.approx(gpus * 2.7 / 3600 / r.yours.tokens_s * 1000)
    beaten = any(
        p.between_tokens_s <= r.yours.between_tokens_s
        and p.usd_per_1k <= r.yours.usd_per_1k
        and (p.between_tokens_s, p.usd_per_1k) != (r.yours.between_tokens_s, r.yours.usd_per_1k)
        for p in (r.a, r.b)
    )
    assert r.yours.on_frontier != beaten


def test_faster_than_the_weights_can_be_read_is_said():
    assert "No 1 H100 do that" in FRONTIER.scene(serve(gpus=1, between_ms=5.0)).warning
    assert not FRONTIER.scene(serve()).warning


def test_weights_that_do_not_fit_are_refused():
    with pytest.raises(ValueError, match="GPUs must be enough for 16-bit weights of .*, got 1; take more"):
        serve(bits=16, gpus=1)


def test_a_chatbot_that_is_too_late_is_said():
    assert "too late" in FRONTIER.scene(serve(between_ms=60.0)).warning
    assert not FRONTIER.scene(serve(between_ms=60.0, application="batch")).warning
