"""What the chain and the one kernel cost, against sums by hand."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernels.machines import machine
from widgets.registry import find

CHAIN = find("sampling_chain")


def run(**inputs):
    return CHAIN.run(**CHAIN.inputs(inputs))


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
    none, blank = rows(top_k=False, top_p=False, min_p=False)
    assert every - none == {"sort", "top-k", "running sum", "top-p", "min-p", "gather"}
    assert none - every == {"row maximum"} and set(blank) == set(written)
    assert sum(s == "off" for s in written.values()) == 1, "grammar and penalties"
    assert sum(s == "off" for s in blank.values()) == 6


def test_without_a_top_k_the_kernel_reads_again():
    assert run(top_k=False).fused.bytes_moved > 1.9 * run().fused.bytes_moved
    assert run(top_k=False, top_p=False).fused.bytes_moved == run(top_p=False).fused.bytes_moved


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
    for state in ({}, {"batch": 1}, {"graph": True}, {"penalties": True}, {"top_k": False, "min_p": False}):
        marks = CHAIN.scene(run(**state), width=width).marks
        ids = [m["id"] for m in marks]
        assert all(
            ids.index("chain-end") < ids.index(f"row-{i}-time-plate") < ids.index(f"row-{i}-time")
            for i in range(11)
        ), "the line goes behind the plates"


def test_the_sort_s_row_counts_its_four_launches():
    rows = [m["s"] for m in CHAIN.scene(run()).marks if m["id"] == "row-2"]
    assert rows == ["sort, 4 launches"]
    assert sum(step.launches for step in run().naive.steps) == 13


@given(st.sampled_from([1.0, 5.0, 7.0]), st.sampled_from([1, 8, 32, 256]), st.booleans(), st.booleans())
def test_the_gain_is_credited_to_bytes_and_launches_by_what_each_saves(launch_us, batch, graph, penalties):
    r = run(launch_us=launch_us, batch=batch, graph=graph, penalties=penalties)
    left = 0 if graph else r.naive.launches - 1
    assert r.saved_launch_s == pytest.approx(left * launch_us * 1e-6, abs=1e-12)
    assert r.saved_memory_s == pytest.approx(
        (r.naive.bytes_moved - r.fused.bytes_moved) / machine("H200").bandwidth
    )
    assert r.saved_s == pytest.approx(r.naive.time_s - r.fused.time_s)
    said = CHAIN.scene(r).takeaway
    if graph:
        assert "has saved the launches" in said
    else:
        more = "bytes" if r.saved_memory_s > r.saved_launch_s else "launches"
        assert said.startswith(f"Most of the gain is {more}")
    marks = {m["id"]: m for m in CHAIN.scene(r).marks}
    assert marks["saved-bytes"]["w"] + marks["saved-launches"]["w"] == pytest.approx(
        marks["chain-end"]["x"] - marks["work-one-fused-kernel"]["x"] - marks["work-one-fused-kernel"]["w"],
        abs=0.1,
    )


def test_the_table_ends_in_the_chain_and_the_one_kernel():
    r = run()
    rows = CHAIN.scene(r).table.rows
    assert rows[-2] == ("the chain", 13, r.naive.launch_s, r.naive.memory_s, r.naive.time_s)
    for column in (1, 2, 3, 4):
        assert sum(row[column] for row in rows[:-2]) == pytest.approx(rows[-2][column])
    assert rows[-1][0] == "one fused kernel" and rows[-1][-1] == pytest.approx(r.fused.time_s)
