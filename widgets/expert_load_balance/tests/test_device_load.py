"""Tokens counted one by one onto devices, and what placement, copies and a limit may and may not do."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernels.expert_load_balance import cost
from kernels.machines import machine
from widgets.registry import find
from widgets.scene import NARROW, WIDE, extent

LOAD = find("device_load")
STATES = st.fixed_dictionaries(
    {
        "pattern": st.sampled_from(["hot", "tail", "even"]),
        "placement": st.sampled_from(["number", "dealt", "load"]),
        "copies": st.integers(0, 16),
        "capacity": st.sampled_from([0, 1, 1.25, 2]),
        "hot_share": st.sampled_from([0.2, 0.6, 1.0]),
        "devices": st.sampled_from([2, 4, 8, 16]),
        "experts": st.sampled_from([8, 16, 64]),
        "top_k": st.sampled_from([1, 2, 8]),
        "tokens": st.sampled_from([1024, 8192]),
    }
)


def run(**inputs):
    return LOAD.run(**LOAD.inputs(inputs))


@given(STATES)
def test_every_kept_pick_is_on_one_device_and_all_wait_for_the_busiest(inputs):
    r = run(**inputs)
    assert sum(d.tokens for d in r.devices) == pytest.approx(inputs["tokens"] * inputs["top_k"] - r.dropped)
    assert r.busiest_tokens == max(d.tokens for d in r.devices) == r.devices[r.busiest].tokens
    for device in r.devices:
        assert sum(tokens for _, tokens in device.held) == pytest.approx(device.tokens)
        assert r.exchange_s + device.experts_s + device.idle_s == pytest.approx(r.step_s)
    assert r.slowdown >= 1 - 1e-12 and 0 <= r.idle_share < 1


@pytest.mark.parametrize("placement", ["number", "dealt", "load"])
def test_against_picks_counted_one_by_one(placement):
    """Give each token its experts, look up where each lives, count."""
    r = run(pattern="tail", placement=placement)
    loads = [e.routed for e in r.experts]
    home = {e: one.devices[0] for e, one in enumerate(r.experts)}
    counted = Counter(home[e] for chosen in cost.assignments(loads, 8192, 2) for e in chosen)
    assert [counted[d] for d in range(8)] == [d.tokens for d in r.devices]


def test_the_time_of_a_token_is_three_products_at_the_machines_rate():
    r, h200 = run(), machine("H200")
    assert r.token_s == pytest.approx(3 * 2 * 7168 * 2048 / h200.rate("fp16"))
    sent = 2 * (8192 / 8) * 2 * 7168 * 2 * 7 / 8  # there and back, of a device's 1,024 tokens
    uneven = r.busiest_tokens / r.mean_tokens
    assert r.exchange_s == pytest.approx(2 * h200.launch_s + sent * uneven / h200.link_bandwidth)


def test_the_same_work_differs_only_in_who_waits():
    even, hot = run(pattern="even"), run()
    assert sum(d.tokens for d in even.devices) == sum(d.tokens for d in hot.devices)
    assert even.slowdown == 1 and even.idle_share == 0
    assert hot.balanced_step_s == pytest.approx(even.step_s)


def test_placing_by_load_beats_placing_by_number_on_a_long_tail():
    steps = [run(pattern="tail", placement=how).step_s for how in ("number", "dealt", "load")]
    assert steps[2] < steps[1] < steps[0]


def test_placing_alone_cannot_mend_one_hot_expert_but_copies_do():
    assert run(placement="load").slowdown > 2
    times = [run(copies=n).step_s for n in (0, 2, 6)]
    assert times == sorted(times, reverse=True)
    assert run(copies=6).slowdown < 1.15
    assert run(copies=6).weight_bytes > run().weight_bytes


def test_a_limit_drops_and_shortens():
    free, held = run(), run(capacity=1.25)
    assert held.step_s < free.step_s and held.dropped > 0 == free.dropped
    assert all(e.kept <= held.capacity_tokens for e in held.experts)


def test_it_says_where_the_picture_ends():
    assert "reading its weights" in LOAD.scenes(run(tokens=1024))[0].warning
    assert not LOAD.scenes(run())[0].warning


def test_heights_of_a_device_are_its_times():
    r = run()
    marks = {m["id"]: m for m in LOAD.scenes(r)[0].marks}
    per_second = marks["exchange-0"]["h"] / r.exchange_s
    assert (marks["idle-1"]["h"] + 1) / per_second == pytest.approx(r.devices[1].idle_s, rel=0.02)
    assert (marks["on-0-0"]["h"] + 1) / per_second == pytest.approx(4915 * r.token_s, rel=0.02)


@pytest.mark.parametrize(
    "inputs", [{"copies": 6}, {"pattern": "even"}, {"pattern": "tail", "placement": "load"}]
)
def test_nobody_is_said_to_be_done_together_while_someone_waits(inputs):
    r = run(**inputs)
    together = "done at the same time" in LOAD.scenes(r)[0].takeaway
    assert not together or (r.idle_share < 0.01 and r.slowdown < 1.005)
    assert together == (inputs == {"pattern": "even"})


@given(STATES)
def test_two_lines_at_most_are_named_beside_the_devices(inputs):
    r = run(**inputs)
    marks = {m["id"]: m for m in LOAD.scenes(r)[0].marks}
    assert [id for id in marks if id.endswith("-line")] == ["step-line", "even-line"][
        : 1 + (r.slowdown > 1.005)
    ]


def test_a_choice_that_cannot_be():
    with pytest.raises(ValueError, match="GPU must be one of V100"):
        run(machine_name="T4")


@pytest.mark.parametrize("width", [WIDE, NARROW])
@pytest.mark.parametrize("share", [0.0, 0.05, 0.3])
def test_the_knob_never_stands_on_the_experts_name(share, width):
    marks = {m["id"]: m for m in LOAD.scene(LOAD.run(**LOAD.inputs({"hot_share": share})), width=width).marks}
    assert marks["pull-hot"]["y"] + 16 < extent(marks["load-0-name"])[1]


@pytest.mark.parametrize("width", [WIDE, NARROW])
def test_every_fill_has_its_name_in_the_key_or_in_the_picture(width):
    """A phone's bars are too narrow for "waits"."""
    for state in LOAD.presets.values():
        scene = LOAD.scene(LOAD.run(**LOAD.inputs(state)), width=width)
        fills = {m["role"] for m in scene.marks if m["t"] == "rect" and m["role"] != "ground"}
        assert fills <= {role for role, _ in scene.legend}


def axis(scene, id):
    return [(m["id"], m["y"], m["s"]) for m in scene.marks if m["id"].startswith(f"{id}-tick")]


@pytest.mark.parametrize("width", [WIDE, NARROW])
@pytest.mark.parametrize(
    "pattern, knob, values",
    [("hot", "hot_share", (0.0, 0.3, 0.6, 0.75, 1.0)), ("tail", "skew", (0.0, 1.0, 2.0))],
)
@given(STATES)
def test_axes_hold_still_while_a_knob_is_held(pattern, knob, values, width, inputs):
    """A bar that is pulled is as high as its value says, and no other bar moves because an axis does."""
    fixed = {**inputs, "pattern": pattern}
    scenes = [LOAD.scene(run(**{**fixed, knob: value}), width=width) for value in values]
    for id in ("loads", "times"):
        assert len({tuple(axis(scene, id)) for scene in scenes}) == 1


@pytest.mark.parametrize("pattern", ["hot", "tail"])
def test_axes_hold_still_while_copies_and_limit_are_pulled(pattern):
    states = [{"copies": n} for n in (0, 3, 16)] + [{"capacity": c} for c in (1, 1.5, 4)]
    scenes = [LOAD.scene(run(pattern=pattern, **state)) for state in states]
    assert len({(*axis(scene, "loads"), *axis(scene, "times")) for scene in scenes}) == 1


@given(STATES)
def test_a_device_travels_with_its_own_rows_and_waits_for_the_busiest(inputs):
    """Each link carries an even share at least, because a device sends that much, and the busiest carries the longest."""
    r = run(**inputs)
    even = min(d.travel_s for d in r.devices)
    assert max(d.travel_s for d in r.devices) == pytest.approx(r.exchange_s)
    launches = 2 * machine("H200").launch_s
    for device in r.devices:
        more = max(1, device.tokens / r.mean_tokens)
        assert device.travel_s - launches == pytest.approx(
            (r.exchange_s - launches) * more * r.mean_tokens / r.busiest_tokens
        )
        assert even <= device.travel_s <= r.exchange_s * (1 + 1e-12)
