"""Serving under load: the queue's formulas, the simulated server against them, and the cache's way between two pools."""

import json
import random
from pathlib import Path
from statistics import mean

import pytest

from kernels.machines import machine
from kernels.next_bottleneck import cost

H100 = machine("H100")
SMALL = cost.server(cost.LLAMA_8B, H100)
LARGE = cost.server(cost.LLAMA_70B, H100, devices=8)
SETTINGS = [(64, 0), (64, 128), (64, 256), (64, 1024), (16, 256), (16, 0)]
RECORD = Path(cost.__file__).parent / "results" / "ground"


def test_a_step_reads_weights_or_computes_and_then_reads_caches():
    assert SMALL.free_tokens == pytest.approx(H100.ridge())
    assert SMALL.step_s(1, 0) == SMALL.weights_s == pytest.approx(SMALL.step_s(SMALL.free_tokens, 0))
    assert SMALL.step_s(1000, 0) == pytest.approx(1000 * SMALL.token_s)
    assert SMALL.step_s(1, 5000) - SMALL.step_s(1, 0) == pytest.approx(5000 * SMALL.cached_s)
    assert SMALL.weights_s == pytest.approx(2 * cost.LLAMA_8B.linear_parameters / (0.6 * 3.35e12))


@pytest.mark.parametrize(("load", "services"), [(0, 0), (0.5, 1), (0.8, 4), (0.9, 9), (1, float("inf"))])
def test_the_wait_is_load_over_idle(load, services):
    assert cost.waiting_s(load, 2.0) == pytest.approx(2 * services)
    assert cost.waiting_s(load, 2.0, variation=0) == pytest.approx(services)


def test_a_drawn_queue_waits_as_the_formula_says():
    rng, arrived, free, waited = random.Random(4), 0.0, 0.0, []
    for _ in range(60_000):
        arrived += rng.expovariate(0.7)
        waited.append(max(free - arrived, 0.0))
        free = arrived + waited[-1] + 1.0
    assert mean(waited) == pytest.approx(cost.waiting_s(0.7, 1.0, variation=0), rel=0.05)


@pytest.mark.parametrize(("batch", "chunk"), SETTINGS)
def test_a_flooded_server_reaches_its_limit(batch, chunk):
    most = cost.limit(SMALL, prompt=2000, output=200, batch=batch, chunk=chunk)
    run = cost.serve(SMALL, cost.requests(600, 2000, 200), rate=2 * most.rate, batch=batch, chunk=chunk)
    assert 0.9 * most.rate < run.rate < most.rate * 1.01


@pytest.mark.parametrize(("batch", "chunk"), SETTINGS)
def test_every_request_is_served_once_and_gets_its_tokens(batch, chunk):
    drawn = cost.requests(200, 500, 40, seed=3)
    run = cost.serve(SMALL, drawn, rate=4.0, batch=batch, chunk=chunk)
    assert len(run.served) == len(drawn)
    assert sum(n for _, n in run.gaps) == sum(one.output - 1 for one in drawn)  # the first token has no gap
    assert max(n for _, n in run.gaps) <= batch
    for one in run.served:
        assert one.total_s >= one.first_token_s >= SMALL.weights_s
    assert run.goodput() <= run.rate


def test_littles_law_holds_for_the_simulated_server():
    run = cost.serve(SMALL, cost.requests(400, 2000, 200), rate=5.0, batch=64, chunk=256)
    decoding_s = sum(gap_s * n for gap_s, n in run.gaps)
    stayed_s = sum(one.total_s - one.first_token_s for one in run.served)
    assert decoding_s == pytest.approx(stayed_s)
    assert cost.in_flight(run.rate, stayed_s / len(run.served)) == pytest.approx(decoding_s / run.ended_s)


def test_one_request_alone_takes_its_prompt_and_its_steps():
    (one,) = cost.serve(SMALL, [cost.Request(2.0, 600, 3)], chunk=256).served
    chunks = [SMALL.step_s(256, 0), SMALL.step_s(256, 256), SMALL.step_s(88, 512)]
    steps = [SMALL.step_s(1, 601), SMALL.step_s(1, 602)]
    assert one.first_token_s == pytest.approx(sum(chunks))
    assert one.between_s == pytest.approx(mean(steps))
    (short,) = cost.serve(SMALL, [cost.Request(0.0, 600, 1)]).served
    assert short == cost.Served(SMALL.step_s(600, 0), 0.0, SMALL.step_s(600, 0))


def test_what_load_chunk_and_batch_do():
    drawn = cost.requests(300, 2000, 200)

    def at(rate, batch=64, chunk=256):
        return cost.serve(SMALL, drawn, rate=rate, batch=batch, chunk=chunk)

    assert at(11).first_token_s(0.99) > 5 * at(4).first_token_s(0.99)  # the first token pays for the load
    assert at(11).gap_s(0.99) < 1.5 * at(4).gap_s(0.99)  # and the next ones barely notice
    assert at(6, chunk=0).gap_s(0.99) > 5 * at(6).gap_s(0.99)  # whole prompts stop everybody
    assert at(6, chunk=0).first_token_s(0.5) < at(6).first_token_s(0.5)
    assert at(6, batch=16).first_token_s(0.99) > 3 * at(6).first_token_s(0.99)
    assert at(14).goodput() < 0.5 * at(8).goodput() < at(14).rate  # past the knee


def test_a_cache_on_its_way():
    sent = cost.handover(cost.LLAMA_70B, LARGE, prompt=4096, link_byte_s=50e9)
    assert sent.cache_bytes == pytest.approx(1.342e9, rel=1e-3)
    assert sent.sent_s == pytest.approx(27e-3, rel=0.01)
    assert sent.by_layer_s == pytest.approx(sent.sent_s / 80)  # the link keeps pace: the last layer shows
    slow = cost.handover(cost.LLAMA_70B, LARGE, prompt=4096, link_byte_s=1e9)
    assert slow.by_layer_s == pytest.approx(slow.sent_s - slow.prefill_s * 79 / 80)
    half = cost.handover(cost.LLAMA_70B, LARGE, prompt=4096, link_byte_s=50e9, kv_bits=8)
    assert half.cache_bytes == sent.cache_bytes / 2


def test_two_pools_are_sized_by_littles_law():
    prompts, answers = cost.pools(LARGE, rate=8, prompt=4096, output=256, batch=64)
    assert prompts == pytest.approx(8 * 4096 * LARGE.token_s)
    assert answers == pytest.approx(8 * 256 * LARGE.step_s(64, 64 * (4096 + 128)) / 64)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: cost.waiting_s(1.2, 1.0), "load must be"),
        (lambda: cost.serve(SMALL, []), "drawn must"),
        (lambda: cost.serve(SMALL, cost.requests(3, 10, 10), rate=0), "rate must be"),
        (lambda: cost.serve(SMALL, cost.requests(3, 10, 10), chunk=-1), "chunk must be"),
        (lambda: cost.server(cost.LLAMA_8B, H100, reached=1.5), "reached must be"),
        (lambda: cost.limit(SMALL, prompt=0, output=1, batch=1), "prompt must be"),
        (lambda: cost.handover(cost.LLAMA_8B, SMALL, prompt=10, link_byte_s=0), "link_byte_s must be"),
    ],
)
def test_bad_input_gets_a_sentence(call, said):
    with pytest.raises(ValueError, match=said):
        call()


def test_the_record_holds_what_the_lesson_reads():
    run = json.loads((RECORD / "h200.json").read_text())
    assert {one["form"] for one in run["forms"]} == {"ours", "two loops", "one read"}
    assert [one["mode"] for one in run["modes"]] == ["eager", "default", "reduce-overhead", "max-autotune"]
    two, one = ((RECORD / f"h200_{name}.txt").read_text() for name in ("two_loops", "one_read"))
    assert two.count("libdevice.erf") == 2 and two.count("tl.load(in_ptr0") == 2 and "welford" in two
    assert one.count("libdevice.erf") == 1 and one.count("tl.load(in_ptr0") == 1 and "welford" not in one


def test_a_requests_mean_gap_is_a_percentile_over_requests_not_tokens():
    replica = cost.server(cost.LLAMA_8B, machine("H100"), reached=0.6)
    run = cost.serve(replica, cost.requests(100, 2000, 200), rate=6, batch=64, chunk=0)
    means = sorted(one.between_s for one in run.served)
    assert run.mean_gap_s(1.0) == means[-1] and means[0] <= run.mean_gap_s(0.5) <= run.mean_gap_s(0.99)
    assert run.mean_gap_s(0.99) < run.gap_s(0.99) / 3, (
        "a whole prompt stops single tokens, which a mean hides"
    )
