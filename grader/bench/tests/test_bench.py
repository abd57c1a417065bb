"""The bench's own program over its real pipe, on stand-ins for GPU memory, events and graphs."""

from types import SimpleNamespace

import numpy as np
import pytest

from grader.bench import host as bencher
from grader.bench.host import Bench, Broken
from grader.box.warm import JailTrouble
from grader.judge.on_gpu import outputs
from grader.machine.host import numbers
from grader.questions import Case, find
from grader.questions.memory import place

QUESTION = find("gemm_tiling.tiled_gemm")
CASE = Case({"M": 40, "N": 24, "K": 16}, "fp32", layout={"a": "transposed", "b": "padded", "c": "padded"})


@pytest.fixture(scope="module")
def bench():
    """A bench whose program is the stand-in; started once."""
    program = bencher._Program
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bencher, "_Program", lambda module: program("grader.bench.tests.stand_in"))
        one = Bench()
        yield one
        one.stop()


def request(stages=2, **more):
    rng = np.random.default_rng(0)
    inputs = {
        "a": rng.standard_normal((40, 16)).astype(np.float32),
        "b": rng.standard_normal((16, 24)).astype(np.float32),
    }
    placed = place(QUESTION, CASE, inputs)
    tensors = [{**p.as_task(), "storage_bytes": int(p.storage.nbytes)} for p in placed]
    scratch = {"part": {"shape": [4, 8], "dtype": "fp32", "fill": "0.0"}}
    step = {
        "ir": "module {}",
        "arguments": ["a_ptr", "b_ptr", "c_ptr", "M", "stride_am", "part_ptr", "stride_part0"],
    }
    step |= {"grid": [1, 1, 1], "num_warps": 4, "num_stages": stages}
    plan = SimpleNamespace(scratch=scratch)
    scalars = {name: value for name, (_, value) in numbers(CASE, plan, placed).items()}
    header = {"steps": [step], "scalars": scalars, "tensors": tensors, "scratch": scratch, **more}
    return inputs, placed, (header, {p.spec.name: p.storage for p in placed if p.spec.role != "out"})


def test_outputs_come_back_strided_and_inputs_stay(bench):
    inputs, placed, asked = request(repeat=2)
    report, found = bench.ask(*asked)
    assert report["changed"] == [] and report["repeats"] is True and report["sms"] == 132
    got = outputs(placed, found)
    assert np.allclose(got["c"], inputs["a"] @ inputs["b"], atol=1e-5)
    assert np.isnan(found["c"].view(np.float32)).any(), "what lies between the rows keeps its poison"


def test_a_write_beside_an_output_is_seen(bench):
    report, _ = bench.ask(*request(stages=8)[2])
    assert report["changed"] == ["memory beside c"]


def test_trials_come_one_by_one_until_none_is_left(bench):
    *_, asked = request(bar="self", quads=3, trials=2)
    reports = [report for report, _ in bench.stream(*asked)]
    assert [report["more"] for report in reports] == [2, 1, 0]
    assert all(len(report["quads"]) == 3 and len(report["quads"][0]) == 4 for report in reports)
    assert reports[0]["differing"] is False and reports[0]["sets"] > 1
    assert bench.ask(*request()[2])[0]["changed"] == [], "it serves on"


def test_a_bench_that_dies_is_our_trouble_and_an_illegal_access_the_answers(bench):
    _, _, (header, arrays) = request()
    with pytest.raises(JailTrouble, match="broke off"):
        bench.ask({**header, "steps": None}, arrays)
    bench.stop()
    bench.start()
    bench.program.said = lambda: "CUDA error: an illegal memory access was encountered"
    with pytest.raises(Broken, match="outside its tensors"):
        bench.ask({**header, "steps": None}, arrays)
    bench.stop()
