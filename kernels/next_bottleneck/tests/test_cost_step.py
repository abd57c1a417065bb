"""What a step must move: figures recomputed by hand, and counted bytes of the step's own kernels."""

from dataclasses import replace

import pytest

from kernels.next_bottleneck import cost_step
from kernels.next_bottleneck.cost_step import expected_experts, step_work, total
from kernels.next_bottleneck.shapes import QWEN3_30B_A3B, SPEAKING
from kernels.tests.figures import REFUSAL


def test_the_weights_of_qwen3_30b_a3b_are_what_its_name_says():
    s = QWEN3_30B_A3B
    layer = s.hidden * (s.qkv_width + s.q_width + s.experts * (1 + 3 * s.intermediate))
    assert s.layers * layer + 2 * s.vocabulary * s.hidden == pytest.approx(30.5e9, rel=0.01)
    active = s.hidden * (s.qkv_width + s.q_width + s.experts + s.top_k * 3 * s.intermediate)
    assert s.layers * active + 2 * s.vocabulary * s.hidden == pytest.approx(3.3e9, rel=0.02)


def test_one_row_reads_its_own_experts_and_many_read_all():
    assert expected_experts(1, 8, 128) == pytest.approx(8)
    assert expected_experts(16, 8, 128) == pytest.approx(128 * (1 - (15 / 16) ** 16))
    assert expected_experts(4096, 8, 128) == pytest.approx(128)


def test_a_step_of_one_row_by_hand():
    """4-bit experts of groups of 128: 8 x 3 x 2048 x 768 weights of 4.125 bits, in 48 layers."""
    found = step_work(QWEN3_30B_A3B, 1, 4096)
    weights = 48 * 8 * 3 * 2048 * 768 * 4.125 / 8
    assert found["experts"].bytes == pytest.approx(weights + 48 * 2 * 8 * 2048 * 2)
    assert found["attention"].bytes == pytest.approx(48 * (4096 * 2 * 512 * 2 + 2 * 4096 * 2))
    assert found["head"].bytes == pytest.approx(151936 * 2048 * 2 + 2048 * 2 + 151936 * 4)
    assert total(found).launches == 48 * 12 + 4
    assert total(step_work(QWEN3_30B_A3B, 64, 4096)).launches == 48 * 11 + 5, "64 rows need no splits"
    assert total(step_work(QWEN3_30B_A3B, 1, 4096, linear_bits=4)).bytes < total(found).bytes


def test_rows_share_weights_but_not_their_cache():
    one, many = (step_work(SPEAKING, rows, 100) for rows in (1, 64))
    assert many["attention"].bytes == pytest.approx(64 * one["attention"].bytes)
    assert many["experts"].bytes < 8 * one["experts"].bytes
    assert all(many[name].flop == pytest.approx(64 * one[name].flop) for name in one)


def test_a_slot_s_time_is_its_largest_limit():
    work = cost_step.Work(4e9, 1e9, 3)
    assert work.seconds(4e9, 1e12, 1e-6) == 1
    assert work.seconds(1e30, 1e9, 1e-6) == 1
    assert work.seconds(1e30, 1e30, 2.0) == 6


def test_a_waterfall_of_one_row_is_launches_and_of_many_bytes():
    """At 1.5 us a launch, 4.27 TB/s and 790 TFLOP/s: small slots wait for launches whatever the batch."""
    limits = {"byte_s": 4.27e12, "flop_s": 790e12, "launch_s": 1.5e-6}
    one, many = (cost_step.waterfall(step_work(QWEN3_30B_A3B, rows, 8192), **limits) for rows in (1, 64))
    assert one["norm"] == many["norm"] == pytest.approx(48 * 2 * 1.5e-6)
    assert one["attention"] == pytest.approx(48 * (8192 * 2048 + 16384) / 4.27e12)
    assert (
        many["attention"] == pytest.approx(64 * one["attention"]) and max(many, key=many.get) == "attention"
    )


def test_the_share_of_the_gap():
    assert cost_step.gap_closed(10, 10, 2) == 0
    assert cost_step.gap_closed(10, 4, 2) == 0.75
    assert cost_step.gap_closed(10, 12, 2) == -0.25


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: cost_step.gap_closed(1, 1, 1),
        lambda: cost_step.gap_closed(1, 0, 0.5),
        lambda: cost_step.waterfall({}, byte_s=1, flop_s=1, launch_s=1),
        lambda: step_work(SPEAKING, 0, 10),
        lambda: step_work(SPEAKING, 1, -1),
        lambda: step_work(SPEAKING, 1, 1, by="magic"),
        lambda: step_work(SPEAKING, 1, 1, expert_bits=0),
        lambda: expected_experts(1, 9, 8),
        lambda: total({}),
        lambda: replace(SPEAKING, group=100),
    ],
)
def test_nonsense_is_refused(wrong):
    with pytest.raises(ValueError, match=REFUSAL):
        wrong()
