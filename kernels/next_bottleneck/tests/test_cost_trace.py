"""A kept trace is read bar by bar as it was recorded; a modelled one has the step's launches and bytes, and says so."""

import json
from dataclasses import replace

import pytest

from kernels.machines import machine
from kernels.next_bottleneck import cost_trace
from kernels.next_bottleneck.cost_step import step_work, total
from kernels.next_bottleneck.cost_trace import Bar, busy_s, modelled, of_record
from kernels.next_bottleneck.shapes import QWEN3_30B_A3B
from kernels.tests.figures import REFUSAL

KEPT = {
    "machine": {"gpu": "a GPU"},
    "case": "2 layers, 1 x 8 keys",
    "eager_us": 90.0,
    "graph_us": 30.0,
    "differ": ["eager launch 1, norm: the graph has no fill"],
    "slots": ["norm", "head"],
    "kernels": ["cuLaunchKernelEx", "norm_kernel", "gemm"],
    "eager": {
        "host": [[0, 0.0, 20.0], [1, 20.0, 30.0]],
        "calls": [[0, 5.0, 4.0], [0, 25.0, 4.0]],
        "launches": [[0, 1, 30.0, 2.0, 7], [1, 2, 60.0, 10.0, 9]],
    },
    "graph": {"host": [], "calls": [[0, 0.0, 9.0]], "launches": [[0, 1, 10.0, 2.0, 7]]},
}


def test_a_record_is_read_bar_by_bar():
    found = of_record(KEPT, "eager")
    assert found.measured and found.where == "a GPU" and found.alone_s == pytest.approx(90e-6)
    assert found.host[1].name == "head" and found.host[1].end_s == pytest.approx(50e-6)
    assert [bar.name for bar in found.calls] == ["cuLaunchKernelEx"] * 2
    last = found.launches[1]
    assert (last.name, last.slot, last.stream) == ("gemm", "head", 9) and found.end_s == pytest.approx(70e-6)
    assert found.busy_s == pytest.approx(12e-6) and found.differ == tuple(KEPT["differ"])
    assert of_record(KEPT, "graph").end_s == pytest.approx(12e-6)


def test_busy_time_counts_an_overlap_once_and_only_what_is_in_the_window():
    bars = [Bar("a", "", 1.0, 4.0), Bar("b", "", 4.0, 3.0), Bar("c", "", 10.0, 1.0)]
    assert busy_s(bars) == busy_s(bars[::-1]) == 7
    assert busy_s(bars, 2, 10.5) == 5.5 and busy_s(bars, 7, 10) == 0 and busy_s([]) == 0


@pytest.mark.parametrize("run", cost_trace.RUNS)
def test_a_modelled_step_has_the_launches_of_cost_step_and_no_less_than_its_bytes_take(run):
    found = modelled(run)
    whole = total(step_work(replace(QWEN3_30B_A3B, layers=8), 1, 4096, linear_bits=4))
    assert len(found.launches) == whole.launches and not found.measured
    assert found.busy_s >= whole.bytes / machine("H200").bandwidth
    assert found.busy_s < found.end_s and all(
        a.end_s <= b.start_s for a, b in zip(found.launches, found.launches[1:], strict=False)
    )


def test_a_kept_file_is_preferred(tmp_path, monkeypatch):
    monkeypatch.setattr(cost_trace, "KEPT", tmp_path / "trace.json")
    cost_trace.trace.cache_clear()
    assert not cost_trace.trace("eager").measured
    cost_trace.KEPT.write_text(json.dumps(KEPT))
    cost_trace.trace.cache_clear()
    assert cost_trace.trace("eager").measured
    cost_trace.trace.cache_clear()
    with pytest.raises(ValueError, match=REFUSAL):
        cost_trace.trace("compiled")
