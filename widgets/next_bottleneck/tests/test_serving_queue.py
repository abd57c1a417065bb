"""What load, batch and chunk do to users, against the simulated server and the queue's own laws."""

import pytest

from kernels.machines import machine
from kernels.next_bottleneck import cost
from widgets import units
from widgets.next_bottleneck.serving_queue import FIRST_S, RATES, REQUESTS, WHOLE
from widgets.registry import find
from widgets.scene import NARROW, WIDE

QUEUE = find("serving_queue")
REPLICA = cost.server(cost.LLAMA_8B, machine("H100"), reached=0.6)


def queue(**inputs):
    return QUEUE.run(**QUEUE.inputs(inputs))


@pytest.mark.parametrize("rate", [2, 9, 16])
def test_a_point_is_a_run_of_the_server(rate):
    run = cost.serve(REPLICA, cost.requests(REQUESTS, 2000, 200), rate=rate, batch=64, chunk=256)
    now = queue(rate=rate).now
    assert (now.first_p50_s, now.first_p99_s) == (run.first_token_s(0.5), run.first_token_s(0.99))
    good = [one for one in run.served if one.first_token_s <= 0.5 and one.between_s <= 0.05]
    assert now.in_time_s == pytest.approx(rate * len(good) / REQUESTS)


@pytest.mark.parametrize("width", [WIDE, NARROW])
@pytest.mark.parametrize("rate", RATES)
def test_a_wait_beyond_the_axis_is_written_at_its_knob(rate, width):
    r = queue(rate=rate)
    marks = {m["id"]: m for m in QUEUE.scene(r, width=width).marks}
    beyond = r.now.first_p99_s > FIRST_S
    assert ("beyond" in marks) == beyond
    if beyond:
        assert units.seconds(r.now.first_p99_s) in marks["beyond"]["s"]
        assert abs(marks["beyond"]["x"] - marks["pull-rate"]["x"]) < 30


def test_the_second_promise_is_drawn_where_no_gap_comes_near_it():
    for preset in QUEUE.presets.values():
        r = queue(**preset)
        marks = {m["id"]: m for m in QUEUE.scene(r).marks}
        assert ("gauge" in marks) != ("gap-title" in marks)
        if "gauge" in marks:
            share = marks["gauge-now"]["w"] / marks["gauge"]["w"]
            assert share == pytest.approx(r.now.mean_gap_p99_s / cost.BETWEEN_S, abs=0.01)


def test_load_is_paid_by_the_first_token():
    low, knee, past = queue(rate=4), queue(rate=10), queue(rate=13)
    assert knee.now.first_p99_s > 3 * low.now.first_p99_s and past.now.first_p99_s > 2.5
    assert past.now.gap_p99_s < 1.3 * low.now.gap_p99_s
    assert low.late_share == 0 < knee.late_share < 0.2 < 0.5 < past.late_share
    assert knee.load < 1 < past.load


def test_the_question_says_what_the_simulator_says():
    words = QUEUE.prediction.question
    assert (
        f"{queue().limit_s:.1f} requests" in words and f"after {queue(rate=5).now.first_p99_s:.2f} s" in words
    )


def test_whole_prompts_hide_in_the_median():
    whole, cut = queue(rate=6, chunk=WHOLE), queue(rate=6)
    assert whole.chunk == 0 and whole.now.first_p50_s < cut.now.first_p50_s
    assert whole.now.gap_p99_s > 5 * cut.now.gap_p99_s and whole.now.gap_p50_s < 1.2 * cut.now.gap_p50_s


@pytest.mark.parametrize(
    ("batch", "chunk", "rate"), [(64, 64, 2), (16, 256, 9), (128, 2048, 16), (4, WHOLE, 5)]
)
def test_percentiles_and_shares_are_in_order(batch, chunk, rate):
    r = queue(batch=batch, chunk=chunk, rate=rate)
    assert [one.rate for one in r.curve] == list(RATES) and r.now == r.curve[rate - RATES[0]]
    for one in r.curve:
        assert one.first_p50_s <= one.first_p99_s and one.gap_p50_s <= one.gap_p99_s
        assert 0 <= one.in_time_s <= one.rate
    assert r.load == pytest.approx(rate / r.limit_s) and 0 <= r.late_share <= 1


@pytest.mark.parametrize(("batch", "chunk"), [(8, 256), (64, 128), (64, 256), (64, WHOLE)])
def test_beyond_the_limit_most_come_late_and_well_below_it_none(batch, chunk):
    r = queue(batch=batch, chunk=chunk)
    for one in r.curve:
        if one.rate > 1.25 * r.limit_s:
            assert one.in_time_s < 0.5 * one.rate
        if one.rate < 0.5 * r.limit_s:
            assert one.in_time_s > 0.97 * one.rate


@pytest.mark.parametrize("width", [WIDE, NARROW])
@pytest.mark.parametrize("preset", QUEUE.presets)
def test_a_column_is_what_arrives_and_the_framed_one_is_the_title_s(preset, width):
    r = queue(**QUEUE.presets[preset])
    (scene,) = QUEUE.scenes(r, width=width)
    marks = {mark["id"]: mark for mark in scene.marks}
    per_request = (marks["bar-tick0"]["y"] - marks["bar-tick2"]["y"]) / 16
    for one in r.curve:
        good, late = marks[f"good{one.rate}"], marks[f"late{one.rate}"]
        assert good["h"] == pytest.approx(one.in_time_s * per_request, abs=0.02)
        assert good["h"] + late["h"] == pytest.approx(one.rate * per_request, abs=0.02)
    frame, good = marks["bar-now"]["p"][::2], marks[f"good{r.rate}"]
    assert min(frame) < good["x"] and good["x"] + good["w"] < max(frame)
    assert marks["bar-title"]["s"].startswith(
        f"{r.rate} arrive per second, {units.number(r.now.in_time_s)} in time"
    )
    assert marks["pull-rate"]["x"] == pytest.approx(good["x"] + good["w"] / 2, abs=0.02)


@pytest.mark.parametrize("chunk", [128, 256, WHOLE])
def test_both_lines_are_the_waits_that_the_promises_are_about(chunk):
    r = queue(chunk=chunk)
    run = cost.serve(REPLICA, cost.requests(REQUESTS, 2000, 200), rate=10, batch=64, chunk=r.chunk)
    assert r.now.mean_gap_p99_s == run.mean_gap_s(0.99)
    for one in r.curve:
        kept = one.first_p99_s <= cost.FIRST_TOKEN_S and one.mean_gap_p99_s <= cost.BETWEEN_S
        assert one.in_time_s >= 0.98 * one.rate if kept else one.in_time_s < one.rate


def test_each_state_has_its_sentence():
    said = {name: QUEUE.scenes(queue(**given))[-1].takeaway for name, given in QUEUE.presets.items()}
    assert len(set(said.values())) == len(said), said


def test_one_gap_in_a_hundred_is_longer_than_any_mean_shows():
    r = queue(**QUEUE.presets["Whole prompts"])
    (scene,) = QUEUE.scenes(r)
    assert r.late_share == 0 and r.now.gap_p99_s > cost.BETWEEN_S > r.now.mean_gap_p99_s
    assert scene.figures[2].text in scene.takeaway and scene.figures[2].role != "hot"
    marks = {mark["id"]: mark for mark in scene.marks}
    at, promise = marks["gap_p99_s"]["p"][2 * (r.rate - RATES[0]) + 1], marks["mean_gap_p99_s-promise"]["y"]
    assert at < promise < marks["mean_gap_p99_s"]["p"][2 * (r.rate - RATES[0]) + 1], "drawn over the promise"


def test_past_the_limit_the_sentence_says_where_most_are_served():
    r = queue(rate=13)
    (scene,) = QUEUE.scenes(r)
    most = max(r.curve, key=lambda one: one.in_time_s)
    assert most.in_time_s > r.now.in_time_s and scene.takeaway.endswith(f"at {most.rate}.")


@pytest.mark.parametrize(
    "inputs", [{}, {"batch": 4}, {"chunk": 64}, {"chunk": WHOLE}, {"prompt": 4000}], ids=str
)
def test_the_asked_rate_is_the_last_one_at_which_the_server_keeps_both_promises(inputs):
    r = queue(**inputs)
    assert r.kept_rate == 0 or queue(**inputs, rate=r.kept_rate).late_share < 0.02
    if r.kept_rate < RATES[-1]:
        worse = queue(**inputs, rate=max(r.kept_rate + 1, RATES[0])).now
        assert worse.first_p99_s > cost.FIRST_TOKEN_S or worse.mean_gap_p99_s > cost.BETWEEN_S
    (scene,) = QUEUE.scenes(r)
    lines = [mark["x"] for mark in scene.marks if mark["id"] == "kept"]
    assert lines == ([pytest.approx(middle(scene, r.kept_rate), abs=0.02)] if r.kept_rate else [])


@pytest.mark.parametrize("width", [WIDE, NARROW])
@pytest.mark.parametrize("chunk", [64, 256, 2048, WHOLE])
def test_the_gaps_have_a_panel_where_one_in_a_hundred_is_long_and_else_the_bars_have_its_room(chunk, width):
    r, bars = queue(chunk=chunk), []
    long = max(one.gap_p99_s for one in r.curve) > cost.BETWEEN_S
    for rate in (RATES[0], RATES[-1]):  # the panel stays while the load is pulled
        marks = {m["id"]: m for m in QUEUE.scenes(queue(chunk=chunk, rate=rate), width=width)[0].marks}
        assert ("gap-title" in marks) == long
        bars.append(marks["bar-tick0"]["y"] - marks["bar-tick2"]["y"])
    assert bars[0] == bars[1] and (bars[0] > 150) != long
    shades = [m for id, m in marks.items() if id.endswith("-shade")]
    assert len(shades) == (2 + long) * bool(r.kept_rate)
    assert all(m["role"] == "useful" and max(m["p"][::2]) == marks["kept"]["x"] for m in shades)


def middle(scene, rate):
    (bar,) = (mark for mark in scene.marks if mark["id"] == f"good{rate}")
    return bar["x"] + bar["w"] / 2


def test_with_the_defaults_eight_a_second_keep_both_promises():
    assert queue().kept_rate == 8


@pytest.mark.parametrize(
    "inputs", [{"rate": 16, "batch": 4}, {"rate": 16, "chunk": 64}, {"rate": 13}], ids=str
)
def test_a_sentence_compares_two_different_rates(inputs):
    (scene,) = QUEUE.scenes(queue(**inputs))
    assert f"at {inputs['rate']}." not in scene.takeaway


@pytest.mark.parametrize("width", [WIDE, NARROW])
@pytest.mark.parametrize(
    "inputs", [{}, {"batch": 4}, {"prompt": 4000, "chunk": WHOLE}, {"prompt": 500}], ids=str
)
def test_a_wait_beyond_the_axis_leaves_with_an_arrow_and_its_number(inputs, width):
    r = queue(**inputs)
    (scene,) = QUEUE.scenes(r, width=width)
    marks = {mark["id"]: mark for mark in scene.marks}
    top, foot = (marks[f"first-s-tick{i}"]["y"] - 4 for i in (4, 0))
    drawn = marks["first_p99_s"]["p"][1::2]
    inside = [one.first_p99_s for one in r.curve]
    inside = inside[: next((i for i, s in enumerate(inside) if s > FIRST_S), len(inside))]
    for y, seconds in zip(drawn, inside, strict=False):
        assert y == pytest.approx(foot + (top - foot) * seconds / FIRST_S, abs=0.02)
    last = r.curve[-1].first_p99_s
    assert ("first_p99_s-out" in marks) == (last > FIRST_S)
    if last > FIRST_S:
        assert drawn[-1] == pytest.approx(top) and len(inside) < len(r.curve)
        assert marks["first_p99_s-name"]["s"] == f"↑ {units.seconds(last)} at {RATES[-1]}"


def test_each_promise_says_what_it_is_about_and_lies_in_that_panel():
    marks = {mark["id"]: mark for mark in QUEUE.scenes(queue(chunk=WHOLE))[0].marks}
    assert marks["first_p99_s-promise"]["y"] == pytest.approx(marks["first-s-tick1"]["y"] - 4, abs=0.02)
    assert marks["mean_gap_p99_s-promise"]["y"] == pytest.approx(marks["gap-s-tick1"]["y"] - 4, abs=0.02)
    assert (
        "mean" in marks["mean_gap_p99_s-promise"]["tip"]
        and "mean" in marks["mean_gap_p99_s-promise-name"]["s"]
    )
