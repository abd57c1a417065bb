"""What the recorded run on two H200s says of expert parallelism, in sentences that a lesson may lean on."""

import json
from itertools import chain

import pytest

from kernels.expert_load_balance import bench, beside_model, cases, cost
from kernels.expert_load_balance.busiest import busiest
from kernels.expert_load_balance.tests.recorded_run import OF_ONE_GPU, RESULTS, RUN, TWO, in_parts, row, times

MIXTRAL, QWEN, DEEPSEEK = (shape.name for shape in (cases.MIXTRAL, cases.QWEN, cases.DEEPSEEK))


def exchanged(shape, tokens):
    """The share of a step in which rows travel."""
    one = row(shape, tokens)
    return (one["stages_us"]["dispatch"] + one["stages_us"]["return"]) / one["us"]


CLAIMS = {  # sentence: (what the run says, from, to)
    "a router that collapsed onto one GPU makes the step 1.8 times longer": (
        lambda: times(MIXTRAL, "same few"),
        1.7,
        2.0,
    ),
    "copies bring it back to the even step": (lambda: times(MIXTRAL, "same few", "replicated"), 0.95, 1.1),
    "Zipf's law costs nearly half": (lambda: times(MIXTRAL, "Zipf"), 1.35, 1.6),
    "and nothing after replication": (lambda: times(MIXTRAL, "Zipf", "replicated"), 0.95, 1.1),
    "one hot expert costs a third": (lambda: times(MIXTRAL, "one hot"), 1.25, 1.45),
    "which placing it better does not change": (lambda: times(MIXTRAL, "one hot", "greedy"), 1.25, 1.45),
    "large experts, many tokens: two GPUs do 1.7 times as much": (
        lambda: row(MIXTRAL, 4096)["speedup"],
        1.55,
        1.85,
    ),
    "small experts: two GPUs hardly more than one": (lambda: row(QWEN, 4096)["speedup"], 0.8, 1.25),
    "few tokens: two GPUs are slower than one": (lambda: row(MIXTRAL, 16)["speedup"], 0.4, 0.95),
    "many experts' weights are read by two: faster even at 16 tokens": (
        lambda: row(DEEPSEEK, 16)["speedup"],
        1.3,
        2.0,
    ),
    "rows travel for an eighth of the step": (lambda: exchanged(MIXTRAL, 4096), 0.08, 0.2),
    "for a quarter of it with rows of 14 KB": (lambda: exchanged(DEEPSEEK, 4096), 0.15, 0.35),
    "a plain all-to-all reaches two thirds of the datasheet": (lambda: RUN["link_of_datasheet"], 0.6, 0.7),
    "a collapsed router's dispatch fills the link": (
        lambda: row(DEEPSEEK, 4096, "same few")["link_share"],
        0.9,
        1.5,
    ),
    "parts of the tokens cost: 1.1 times at least": (lambda: min(in_parts(of_tokens())), 1.1, 1.6),
    "and 3 times at most": (lambda: max(in_parts(of_tokens())), 2.0, 4.0),
}


def of_tokens():
    return "tokens" if any(str(r["parts"]).endswith("tokens") for r in RUN["rows"]) else ("2", "4")


@pytest.mark.parametrize("sentence", CLAIMS)
def test_the_run_says_so(sentence):
    measured, low, high = CLAIMS[sentence]
    assert low <= measured() <= high


def test_most_rows_are_as_the_model_says_and_even_ones_exactly():
    skewed = TWO.skewed()
    assert len(skewed) == 90 and sum(not TWO.off(r) for r in skewed) == 70
    assert TWO.predicted_us(row(MIXTRAL, 4096)) == pytest.approx(row(MIXTRAL, 4096)["us"])
    slow = row(DEEPSEEK, 4096, "Zipf", "replicated, home first")
    assert TWO.off(slow) == pytest.approx(0.24, abs=0.01) and TWO.stage(slow) == "experts 7365 µs, even 5378"
    assert TWO.line(slow).endswith("11770 µs, predicted   9511, off by +24%")


def as_on(ranks: int) -> dict:
    """A run that goes just as the model says: a µs for each pair of the busiest device, and 1000 before."""
    rows = []
    for setting in (s for s in cases.settings(ranks, "cuda") if s.parts == 1):
        given = {"shape": setting.shape.name, "experts": setting.shape.experts, "top_k": setting.shape.top_k}
        given |= {"tokens": setting.tokens, "skew": setting.skew, "parts": "1"}
        given["placement"] = setting.placement + ", home first" * setting.home_first
        held = cost.device_loads(setting.loads, setting.placed, ranks)
        rows.append(given | {"us": 1000.0 + max(held) - beside_model.FEWEST * setting.shape.top_k})
    return {"ranks": ranks, "rows": rows}


@pytest.mark.parametrize("ranks", [2, 4, 8])
def test_a_run_on_any_number_of_devices_is_set_beside_the_model_and_beside_one_on_fewer(ranks):
    run, fewer = cases.recorded(as_on(ranks)), cases.recorded(as_on(1))
    found = [r for r in run.skewed() if r["tokens"] > beside_model.FEWEST]
    assert len(found) == 110 - 11 and not any(map(run.off, found))
    one = run.found(MIXTRAL, 4096, "Zipf")
    assert f" {one['us']:.0f} µs, predicted" in run.line(one) and "off" not in run.line(one)
    assert run.times_of(fewer, run.even(one)) == pytest.approx(ranks, rel=0.01)
    one["us"] *= 2
    assert run.off(one) == pytest.approx(1, abs=0.02) and "off by +1" in run.line(one)


def test_every_recorded_layer_was_right():
    for path in RESULTS.glob("*_x*.json"):
        run = json.loads(path.read_text())
        assert run["same_bits"]["compared"] >= 80 and run["same_bits"]["differ"] == [] and "ended" not in run
        assert all("wrong" not in r and r["error"] < 8e-3 for r in run["rows"])
        assert f"--ranks {run['ranks']}" in run["command"] and run["versions"]["nccl"] and run["date"]


def test_the_busiest_rank_is_where_the_placement_put_it():
    """Counted while it ran, and worked out beforehand: copies that take turns are even to within a row each."""
    for r in RUN["rows"]:
        if r["tokens"] >= 1024 and "home first" not in r["placement"]:
            loads = cases.loads_of_skew(r["skew"], 2 * r["tokens"], r["top_k"], r["experts"])
            expected = cost.imbalance(cost.device_loads(loads, cases.place(r["placement"], loads, 2), 2))
            assert r["imbalance"] == pytest.approx(expected, abs=0.01)


def test_the_rows_of_one_gpu_are_right_and_those_of_the_table():
    rows = [zip(json.loads(path.read_text())["rows"], cases.BUSIEST, strict=True) for path in OF_ONE_GPU]
    for r, setting in chain(*rows):
        given = busiest(setting)
        for name, value in bench.facts(setting, given).items():
            assert r[name] == (pytest.approx(value, rel=1e-3) if isinstance(value, float) else value)
        assert r["error"] <= bench.TOLERANCE and r["us"] > 0 and not {"wrong", "failed"} & set(r)
        assert "ratio" in r["peers"]["torch loop"] and "ratio" in r["peers"]["torch grouped_mm"]
        shape = setting.shape
        work = cost.device_work(given.rows, given.read, shape.hidden, shape.intermediate)
        assert r["tflop_s"] == pytest.approx(work.flops / r["us"] / 1e6, rel=1e-3)
        assert r["tb_s"] == pytest.approx(work.bytes_moved / r["us"] / 1e6, rel=1e-3)
