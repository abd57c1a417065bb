"""What is kept and drawn against the reference sampler; what it costs against sums by hand."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernels.machines import machine
from kernels.sampling_fusion.reference import Ranking, kept
from widgets.registry import find
from widgets.sampling_fusion.sampling_chain_model import LOGITS, WORDS
from widgets.scene import extent

CHAIN = find("sampling_chain")
RULES = st.fixed_dictionaries(
    {
        "temperature": st.sampled_from([0.1, 0.8, 1.0, 1.7]),
        "top_k": st.integers(1, 12),
        "top_p": st.sampled_from([0.1, 0.5, 0.9, 1.0]),
        "min_p": st.sampled_from([0.0, 0.1, 0.5]),
        "u": st.sampled_from([0.0, 0.33, 0.6, 1.0]),
    }
)


def run(**inputs):
    return CHAIN.run(**CHAIN.inputs(inputs))


@given(RULES)
def test_the_rules_are_the_references(inputs):
    r = run(**inputs)
    ranking = Ranking.of(np.array(LOGITS), inputs["temperature"])
    keep = kept(ranking, inputs["top_k"], inputs["top_p"], inputs["min_p"])
    assert [not one.cut_by for one in r.row] == keep.tolist() and r.kept == keep.sum()
    cdf = np.cumsum(np.where(keep, ranking.weight, 0)) / ranking.weight[keep].sum()
    assert cdf[r.drawn] >= inputs["u"] - 1e-9 and keep[r.drawn]
    assert sum(one.final for one in r.row) == pytest.approx(1)


@given(RULES)
def test_bars_hatch_exactly_what_is_dropped(inputs):
    r = run(**inputs)
    marks = {m["id"]: m for m in CHAIN.scenes(r)[-1].marks}
    for i, one in enumerate(r.row):
        kept_role = "now" if i == r.drawn else "useful"
        assert marks[f"bar-{i}"]["role"] == ("dropped" if one.cut_by else kept_role)
        assert marks[f"word-{i}"]["s"] == WORDS[one.token]
    assert WORDS[r.row[r.drawn].token] in marks["u-name"]["s"]


def test_greedy_keeps_the_best_alone():
    r = run(temperature=0.0, u=1.0)
    assert (r.kept, r.drawn, r.row[0].final) == (1, 0, 1.0)


def test_time_is_bytes_over_bandwidth_and_each_launch():
    r, h200 = run(), machine("H200")
    assert r.naive.time_s == pytest.approx(r.naive.bytes_moved / h200.bandwidth + 13 * h200.launch_s)
    assert sum(s.launch_s + s.memory_s for s in r.naive.steps) == pytest.approx(r.naive.time_s)
    # one radix sort of 32-bit keys with their 64-bit tokens: four passes, read and written
    sort = next(s for s in r.naive.steps if s.name == "sort")
    assert sort.memory_s == pytest.approx(4 * 2 * 32 * 128256 * 12 / h200.bandwidth)
    assert r.fused.launches == 1 and r.fused.bytes_moved < 1.2 * 32 * 128256 * 4


def test_a_graph_takes_the_launches_and_leaves_the_bytes():
    plain, graph = run(), run(graph=True)
    assert graph.naive.bytes_moved == plain.naive.bytes_moved
    assert plain.naive.time_s - graph.naive.time_s == pytest.approx(12 * machine("H200").launch_s)
    assert sum(s.launch_s + s.memory_s for s in graph.naive.steps) == pytest.approx(graph.naive.time_s)


def test_one_request_is_launches_and_a_large_batch_is_bytes():
    one, many = run(batch=1), run(batch=256)
    assert one.naive.launch_s > 10 * one.naive.memory_s
    assert many.naive.memory_s > 10 * many.naive.launch_s
    assert one.speedup > 10 and many.speedup > 10


@given(st.sampled_from([10, 50, 200]), st.sampled_from([1, 64, 4096]))
def test_fleet_grows_with_replicas_and_steps(tokens_s, replicas):
    r = run(tokens_s=tokens_s, replicas=replicas)
    assert r.naive.gpus == pytest.approx(r.naive.time_s * tokens_s * replicas)
    assert r.gpus_saved == pytest.approx(r.naive.gpus - r.fused.gpus)


def test_penalties_cost_launches_in_the_chain_and_little_in_the_kernel():
    plain, more = run(), run(penalties=True)
    assert more.naive.launches == plain.naive.launches + 4
    assert more.fused.launches == 1 and more.fused.time_s < 1.1 * plain.fused.time_s


def test_measurements_stand_beside_their_own_row():
    r = run()
    scene = CHAIN.scenes(r, {"naive_s": 2 * r.naive.time_s, "fused_s": r.fused.time_s})[-1]
    assert "2× the model" in scene.beside[0] and "as the model says" in scene.beside[1]


def test_a_rule_that_is_off_removes_its_kernel_and_keeps_its_row():
    def rows(**inputs):
        r = run(**inputs)
        return {step.name for step in r.naive.steps}, {
            m["id"]: m["s"]
            for m in CHAIN.scenes(r)[0].marks
            if m["id"].startswith("row-") and m["t"] == "text"
        }

    every, written = rows()
    none, blank = rows(top_k=12, top_p=1.0, min_p=0.0)
    assert every - none == {"sort", "top-k", "running sum", "top-p", "min-p", "gather"}
    assert none - every == {"row maximum"} and set(blank) == set(written)
    assert sum(s == "off" for s in written.values()) == 1, "grammar and penalties"
    assert sum(s == "off" for s in blank.values()) == 6


def test_without_a_top_k_the_kernel_reads_again():
    assert run(top_k=12, top_p=0.8).fused.bytes_moved > 2 * run(top_p=0.8).fused.bytes_moved
    assert run(top_k=12, top_p=1.0).fused.bytes_moved == run(top_p=1.0).fused.bytes_moved


@given(
    st.sampled_from([1.0, 5.0, 7.0]),
    st.sampled_from([1, 32, 256]),
    st.booleans(),
    st.booleans(),
    st.sampled_from([340, 720]),
)
def test_kernels_stand_end_to_end_and_the_knob_at_their_end(launch_us, batch, graph, penalties, width):
    r = run(launch_us=launch_us, batch=batch, graph=graph, penalties=penalties)
    marks = {m["id"]: m for m in CHAIN.scenes(r, width=width)[0].marks}
    end = marks["launch-clean"]["x"]
    for step in r.naive.steps:
        for part in ("launch", "work"):
            mark = marks[f"{part}-{step.name.replace(' ', '-')}"]
            assert mark["x"] == pytest.approx(end, abs=0.02)
            end = mark["x"] + mark["w"]
    knob = marks["pull-launch"]
    assert end == pytest.approx(knob["x"], abs=0.3)
    if knob["t"] == "handle":  # a graph's one launch may be too short on the axis to be pulled
        drag = knob["drag"][0]
        assert drag["at"][drag["to"].index(launch_us)] == pytest.approx(knob["x"], abs=0.01)
    assert r.longest_s >= r.naive.time_s


@pytest.mark.parametrize("width", [720, 340])
def test_no_line_strikes_through_a_time_or_a_rule(width):
    for state in ({}, {"batch": 1}, {"graph": True}, {"penalties": True}, {"temperature": 2.0}):
        marks = CHAIN.scene(run(**state), width=width).marks
        ids = [m["id"] for m in marks]
        assert all(
            ids.index("chain-end") < ids.index(f"row-{i}-time-plate") < ids.index(f"row-{i}-time")
            for i in range(11)
        ), "the line goes behind the plates"
        named = {m["id"]: m for m in marks}
        if "cut-p-name" in named:
            left, _, right, _ = extent(named["cut-p-name"])
            assert not left < named["cut-k"]["x"] < right


def test_the_sort_s_row_counts_its_four_launches():
    rows = [m["s"] for m in CHAIN.scene(run()).marks if m["id"] == "row-2"]
    assert rows == ["sort, 4 launches"]
    assert sum(step.launches for step in run().naive.steps) == 13


@pytest.mark.parametrize("width", [720, 340])
def test_at_temperature_0_words_neither_touch_nor_promise_a_shorter_chain(width):
    scene = CHAIN.scene(run(temperature=0.0), width=width)
    fates = [extent(m) for m in scene.marks if m["id"].startswith("fate-")]
    assert all(a[2] < b[0] for a, b in zip(fates, fates[1:], strict=False))
    assert "one argmax would do" in scene.takeaway and run(temperature=0.0).naive == run().naive


def test_the_gain_is_credited_to_launches_only_by_their_share():
    r = run()
    share = round(100 * r.naive.launch_s / r.naive.time_s)
    assert f"Launches are {share}% of the chain's time" in CHAIN.scene(r).takeaway
    assert r.naive.memory_s > r.naive.launch_s and r.naive.bytes_moved > 20 * r.fused.bytes_moved
