"""A trace's launches find their slots, and a step's time is the sum of its kernels and gaps."""

import pytest

from kernels.next_bottleneck.timeline import Launch, Share, aligned, by_slot, labels, timeline


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
    found, differ = timeline(replay, labels(EAGER))
    assert found[1] == Launch("inner", "b", 4, 3) and found[3].end_us == 15
    assert differ == []


STEP = [(slot, kernel) for _ in range(3) for slot, kernel in (("norm", "n"), ("qkv", "g"), ("out", "g"))]
NAMES = [name for _, name in STEP]


@pytest.mark.parametrize("place", range(len(STEP) + 1))
def test_one_launch_more_on_either_side_moves_no_other_label(place):
    """In a step of like layers, also where the longest common block begins a layer too early."""
    slots = [slot for slot, _ in STEP]
    eager = [*STEP[:place], ("sample", "memset"), *STEP[place:]]
    assert aligned(eager, NAMES) == (slots, [f"eager launch {place}, sample: the graph has no memset"])
    before = slots[place - 1] if place else "loop"
    got, (said,) = aligned(STEP, [*NAMES[:place], "fill", *NAMES[place:]])
    assert got == [*slots[:place], before, *slots[place:]]
    assert said == f"graph launch {place}, after {before}: the eager run has no fill"


def test_a_launch_that_a_graph_replaces_keeps_its_slot():
    met = [*NAMES[:4], "memset node", *NAMES[5:]]
    assert aligned(STEP, met) == (
        [slot for slot, _ in STEP],
        ["eager launch 4, qkv: g is memset node in the graph"],
    )


def test_runs_that_share_nothing_or_are_empty_are_told_apart_without_a_failure():
    slots, differ = aligned([("a", "x"), ("b", "y")], ["z"])
    assert slots == ["a"] and len(differ) == 2
    assert (
        aligned([], ["z"])[0] == ["loop"]
        and aligned([("a", "x")], [])[0] == []
        and aligned([], []) == ([], [])
    )
    assert timeline([], []) == ([], [])


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
