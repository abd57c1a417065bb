"""A trace's launches find their slots, and a step's time is the sum of its kernels and gaps."""

import pytest

from kernels.next_bottleneck.timeline import Launch, Share, by_slot, labels, timeline
from kernels.tests.figures import REFUSAL


def kernel(name, ts, dur, correlation):
    return {"cat": "kernel", "name": name, "ts": ts, "dur": dur, "args": {"correlation": correlation}}


def asked(ts, correlation):
    return {
        "cat": "cuda_driver",
        "name": "cuLaunchKernel",
        "ts": ts,
        "dur": 1,
        "args": {"correlation": correlation},
    }


def within(slot, ts, dur):
    return {"cat": "user_annotation", "name": f"slot {slot}", "ts": ts, "dur": dur}


EAGER = [
    within("norm", 0, 10),
    within("qkv", 10, 30),
    within("inner", 12, 5),
    {"cat": "user_annotation", "name": "somebody else's", "ts": 0, "dur": 99},
    asked(2, 1),
    asked(14, 2),
    asked(30, 3),
    asked(60, 4),
    kernel("b", 120, 5, 2),
    kernel("a", 100, 5, 1),
    kernel("c", 130, 5, 3),
    kernel("d", 140, 5, 4),
]


def test_a_kernel_belongs_to_the_innermost_range_that_asked_for_it():
    assert labels(EAGER) == [("norm", "a"), ("inner", "b"), ("qkv", "c"), ("loop", "d")]


def test_a_captured_step_has_the_eager_labels_and_its_own_times():
    replay = [kernel(name, 1000 + 4 * i, 3, 7) for i, name in enumerate("abcd")]
    found = timeline(replay, labels(EAGER))
    assert found[1] == Launch("inner", "b", 4, 3) and found[3].end_us == 15
    with pytest.raises(ValueError, match=REFUSAL):
        timeline(replay[:3], labels(EAGER))
    with pytest.raises(ValueError, match=REFUSAL):
        timeline([*replay[:3], kernel("x", 2000, 1, 1)], labels(EAGER))


def test_shares_sum_to_the_step_also_where_kernels_overlap():
    launches = [
        Launch("a", "x", 0, 4),
        Launch("b", "y", 5, 4),
        Launch("a", "z", 8, 4),
        Launch("b", "w", 8.5, 1),
    ]
    found = by_slot(launches)
    assert found == {"a": Share(2, 4 + 3, 0.0), "b": Share(2, 4.0, 1.0)}
    assert sum(one.busy_us + one.gap_us for one in found.values()) == 12
