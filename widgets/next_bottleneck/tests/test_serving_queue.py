"""What load, batch and chunk do to users, against the simulated server and the queue's own laws."""

import pytest

from kernels.machines import machine
from kernels.next_bottleneck import cost
from widgets.next_bottleneck.serving_queue import RATES, REQUESTS, WHOLE
from widgets.registry import find

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


def test_the_bar_is_what_arrives():
    for inputs in ({}, {"rate": 13}, {"rate": 6}):
        r = queue(**inputs)
        marks = {mark["id"]: mark for mark in QUEUE.scenes(r)[-1].marks}
        late = marks.get("bar-hot", {"w": 0})["w"]
        assert marks["bar-useful"]["w"] + late == pytest.approx(560 * r.rate / 16, abs=0.2)
        assert marks["pull-rate"]["drag"][0]["input"] == "rate"


def test_each_state_has_its_sentence():
    said = {name: QUEUE.scenes(queue(**given))[-1].takeaway for name, given in QUEUE.presets.items()}
    assert len(set(said.values())) == len(said), said


def test_a_gap_over_the_promise_is_not_red_while_every_request_is_in_time():
    """The promise is about a request's mean gap, and one gap in a hundred may be longer."""
    r = queue(**QUEUE.presets["Whole prompts"])
    figures = {one.label: one for one in QUEUE.scenes(r)[-1].figures}
    gap = figures["99 of 100 gaps between tokens"]
    assert r.late_share == 0 and gap.value > cost.BETWEEN_S and gap.role != "hot"
